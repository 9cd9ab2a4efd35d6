/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions for the tests of products by words (words_case.h).
 */
#include "words_case.h"

#include "cpu/device/tiers.h"
#include "cpu/plan/cpu_plan.h"
#include "elements.h"

const tgl_type types_of_words[CPU_WORD_KINDS] = {TGL_BF16, TGL_F32, TGL_F16, TGL_I8, TGL_F32};

const cpu_words *words;

/* The names that tests have passed to has_part(), and whether any tier had the part. */
static struct part {
    const char *name; /* NULL: unused */
    bool is_tested;
} parts[CPU_WORD_KINDS + 2];

bool has_part(const char *name, bool has)
{
    size_t i = 0;
    while (parts[i].name != NULL && strcmp(parts[i].name, name) != 0)
        i++;
    assert_true(i + 1 < COUNT_OF(parts));
    parts[i].name = name;
    parts[i].is_tested = parts[i].is_tested || has;
    return has;
}

bool has_kind(cpu_word_kind kind)
{
    static const char *const names[CPU_WORD_KINDS] = {[CPU_WORDS_BF16] = "words of bf16",
                                                      [CPU_WORDS_F32] = "words of f32",
                                                      [CPU_WORDS_F16] = "words of f16",
                                                      [CPU_WORDS_I8] = "words of i8",
                                                      [CPU_DIGITS_F32] = "digits of f32"};
    return has_part(names[kind], words->multiply[kind] != NULL);
}

/* Prints the parts that no tier had. Returns whether there were any. */
static bool print_untested(void)
{
    bool is_complete = true;
    for (const struct part *p = parts; p->name != NULL; p++) {
        if (p->is_tested) continue;
        printf("skipped: no instruction set of this processor has %s\n", p->name);
        is_complete = false;
    }
    return !is_complete;
}

bool has_type(tgl_type type)
{
    for (int kind = 0; kind < CPU_WORD_KINDS; kind++)
        if (types_of_words[kind] == type) return has_kind((cpu_word_kind)kind);
    return false;
}

int run_tiers_with_words(int (*test_tier)(const char *tier), void (*before_permission)(void))
{
    cpu_facts facts;
    const cpu_tier *tiers[CPU_MAX_TIERS];
    int count = 0, failed = 0, tested = 0;
    bool asked = before_permission == NULL;
    tgl_cpu_detect(&facts);
    if (tgl_cpu_choose_tiers(facts.features, getenv("TEGULA_CPU"), tiers, &count) != TGL_OK)
        count = 0;
    for (int i = 0; i < count; i++) {
        words = tiers[i]->words;
        if (words == NULL) continue;
        setenv("TEGULA_CPU", tiers[i]->name, 1);
        if (words->is_permitted != NULL && !asked) before_permission();
        asked = asked || words->is_permitted != NULL;
        if (words->is_permitted != NULL && !words->is_permitted()) continue;
        failed += test_tier(tiers[i]->name);
        tested++;
    }
    if (tested == 0) {
        printf("skipped: this processor or Linux provides no instructions for short words, or "
               "TEGULA_CPU forbids them\n");
        return 77;
    }
    return print_untested() && failed == 0 ? 77 : failed;
}

tgl_problem accurate(tgl_problem problem)
{
    if (problem.type_a == TGL_F32) problem.compute = TGL_COMPUTE_ACCURATE;
    return problem;
}

bool takes_words(tgl_device *dev, const tgl_problem *problem)
{
    return plan_explains(dev, problem, words->name);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

word_block block_of(cpu_word_kind kind, int64_t lines, int64_t k, bool k_contiguous, int64_t spare)
{
    const int64_t rows = k_contiguous ? lines : k, row = k_contiguous ? k : lines;
    word_block x = {.kind = kind};
    const size_t elements = (size_t)((rows - 1) * (row + spare) + row);
    assert_true(guarded_create(&x.memory, elements * tgl_type_size(types_of_words[kind]), true));
    memset(x.memory.bytes, 0xff, x.memory.size); /* NaN or -1 between the rows */
    x.source = (cpu_words_source){x.memory.bytes, row + spare, k_contiguous, lines, k};
    return x;
}

static int64_t index_of(const word_block *x, int64_t line, int64_t p)
{
    return x->source.k_contiguous ? line * x->source.ld + p : p * x->source.ld + line;
}

void set_at(word_block *x, int64_t line, int64_t p, double value)
{
    element_set(types_of_words[x->kind], x->memory.bytes, index_of(x, line, p), value);
}

double get_at(const word_block *x, int64_t line, int64_t p)
{
    return element_get(types_of_words[x->kind], x->memory.bytes, index_of(x, line, p));
}

void *packed_memory(const word_block *x)
{
    const size_t bytes =
        tgl_cpu_aligned(tgl_cpu_words_bytes(x->kind, x->source.lines, x->source.k));
    void *memory = aligned_alloc(CPU_ALIGNMENT, bytes);
    assert_non_null(memory);
    return memset(memory, 0xff, bytes);
}
