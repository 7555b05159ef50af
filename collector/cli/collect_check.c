/* hooktrail check: is this hook file right, and is it what was meant? */
#include "collector/cli/commands.h"

#include "collector/base/plural.h"
#include "collector/dispatcher/hookset.h"

static json_t *fault_to_json(const struct fault *f)
{
    return json_pack("{ss,ss,sI,ss*,ss}", "level", f->level == FAULT_ERROR ? "error" : "warning",
                     "file", f->file, "line", (json_int_t)f->line, "key", f->key, "text", f->text);
}

static int print_json(const struct cli *cli, const struct faults *faults, const struct hookset *set)
{
    json_t *list = json_array();
    json_int_t hooks = set ? (json_int_t)set->n_hooks : 0;

    for (const struct fault *f = faults->first; f; f = f->next) {
        (void)json_array_append_new(list, fault_to_json(f));
    }

    json_t *all = json_pack("{so,sb,sI}", "faults", list, "usable", set != NULL, "hooks", hooks);
    int code = cli_print_json(cli, all);

    json_decref(all);
    return code;
}

/* "3 hooks, 0 faults, 1 warning" */
static int print_text(const struct cli *cli, const struct faults *faults, const struct hookset *set)
{
    cli_put_faults(cli, faults);
    if (set) {
        (void)printf("%zu hook%s, ", set->n_hooks, plural(set->n_hooks));
    }
    (void)printf("%zu fault%s, %zu warning%s\n", faults->errors, plural(faults->errors),
                 faults->warnings, plural(faults->warnings));
    return CLI_DONE;
}

static int report(const struct cli *cli, const struct faults *faults, const struct hookset *set)
{
    int code = cli->json ? print_json(cli, faults, set) : print_text(cli, faults, set);

    return code == CLI_DONE && !set ? CLI_NEGATIVE : code;
}

static int check(const struct cli *cli, const struct contract_ops *ops, const char *hooks,
                 const char *secrets)
{
    const struct hook_source src = { .path = hooks, .secrets_path = secrets };
    struct faults faults;

    faults_init(&faults);

    struct hookset *set = hookset_load(ops, &src, &faults);
    int code = report(cli, &faults, set);

    hookset_unref(set);
    faults_done(&faults);
    return code;
}

static int run(const struct cli *cli, int argc, char **argv)
{
    const char *hooks = NULL;
    const char *contract = "sre";
    const char *secrets = NULL;
    const struct cli_option options[] = {
        { "hooks", .value = &hooks },
        { "contract", .value = &contract },
        { "secrets", .value = &secrets },
        { 0 },
    };
    int first = cli_options(cli, argc, argv, options);

    if (first < 0) {
        return CLI_USAGE;
    }
    if (first < argc) {
        return cli_usage(cli, "takes no operand; name the hooks with --hooks PATH");
    }
    if (!hooks) {
        return cli_usage(cli, "--hooks PATH is missing");
    }

    const struct contract_ops *ops = contract_find(slice_from_cstr(contract));

    if (!ops) {
        return cli_usage(cli, "unknown contract '%s'; known: %s", contract, contract_names());
    }
    return check(cli, ops, hooks, secrets);
}

const struct cli_command check_command = {
    "check",
    run,
    "--hooks PATH [--contract NAME] [--secrets FILE] [--json]",
    "Check hook definitions: every fault with file, line and key, and what is allowed\n"
    "there; and warnings about what is legal and surely unmeant, such as a matcher that\n"
    "is only the beginning of a tool's name. Nothing is run or stored.\n"
    "\n"
    "  --hooks PATH     a file, or a folder of files\n"
    "  --contract NAME  whose hooks they are; sre when not given\n"
    "  --secrets FILE   the secrets that the hooks refer to (oscova)\n"
    "\n"
    "Exit codes: 0 usable, with or without warnings; 1 there are faults; 2 usage.",
};
