/* A bare greedy loop over llama.cpp's C API: the speed that a harness can reach, and no more.
 *
 * The few declarations that it needs stand here: the Python package brings no headers.
 */

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct llama_batch {
    int32_t n_tokens;
    int32_t *token;
    float *embd;
    int32_t *pos;
    int32_t *n_seq_id;
    int32_t **seq_id;
    int8_t *logits;
};

struct llama_batch llama_batch_get_one(int32_t *tokens, int32_t n_tokens);
int32_t llama_decode(void *context, struct llama_batch batch);
int32_t llama_sampler_sample(void *sampler, void *context, int32_t index);
void *llama_get_memory(const void *context);
void llama_memory_clear(void *memory, bool data);

static int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Evaluate a prompt in batches and pick `output` tokens; times_ns takes {first token, last token},
 * counted from the start. Returns 0, or what llama_decode returned. */
int run_loop(void *context, void *sampler, int32_t *prompt, int32_t length, int32_t batch,
             int32_t *tokens, int32_t output, int64_t *times_ns) {
    llama_memory_clear(llama_get_memory(context), true);
    const int64_t start_ns = now_ns();
    for (int32_t at = 0; at < length; at += batch) {
        const int32_t count = length - at < batch ? length - at : batch;
        const int status = llama_decode(context, llama_batch_get_one(prompt + at, count));
        if (status != 0) {
            return status;
        }
    }
    tokens[0] = llama_sampler_sample(sampler, context, -1);
    times_ns[0] = now_ns() - start_ns;
    for (int32_t at = 1; at < output; at++) {
        const int status = llama_decode(context, llama_batch_get_one(tokens + at - 1, 1));
        if (status != 0) {
            return status;
        }
        tokens[at] = llama_sampler_sample(sampler, context, -1);
    }
    times_ns[1] = now_ns() - start_ns;
    return 0;
}
