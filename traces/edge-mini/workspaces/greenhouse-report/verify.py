"""Checks report.csv against readings.csv: exits 0 if every line of it is right."""

import os
import sys

values = {}
seen = set()
with open("readings.csv", newline="") as file:
    for line in file.read().splitlines()[1:]:
        time, sensor, temperature, _battery = line.split(",")
        if temperature != "NA" and (time, sensor) not in seen:
            seen.add((time, sensor))
            values.setdefault(sensor, []).append(float(temperature))

wanted = ["sensor,readings,mean_c,max_c"]
for sensor in sorted(values):
    temperatures = values[sensor]
    mean = sum(temperatures) / len(temperatures)
    wanted.append("%s,%d,%.2f,%.1f" % (sensor, len(temperatures), mean, max(temperatures)))

if not os.path.exists("report.csv"):
    print("report.csv is missing")
    sys.exit(1)
with open("report.csv", newline="") as file:
    lines = file.read().split("\n")
wrong = [number for number, line in enumerate(wanted + [""], start=1)
         if number > len(lines) or lines[number - 1] != line]
if wrong or len(lines) != len(wanted) + 1:
    print("%d lines where %d are due" % (len(lines) - 1, len(wanted)))
    print("wrong lines: %s" % ", ".join(map(str, wrong)))
    sys.exit(1)
print("report.csv is right")
