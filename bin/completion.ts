import { rejectArguments, verbOf } from '../cli/arguments.ts';
import { type CompletedCommands, completionScript, SHELLS } from '../cli/completion.ts';
import { print } from '../cli/output.ts';
import type { Command } from '../cli/program.ts';

/** Every subcommand by name, without the code of the others. */
type Entries = Readonly<Record<string, { readonly summary: string; load(): Promise<{ command: Command }> }>>;

/** `oddswire completion`: the completion of all subcommands for a shell. */
export function completionCommand(entries: Entries): Command {
  const command: Command = {
    usage: `usage: oddswire completion ${SHELLS.join('|')}

  Prints the completion of commands, verbs and options for a shell. It loads every command, so write it to a file once per release:

  bash  oddswire completion bash > ~/.local/share/bash-completion/completions/oddswire
  zsh   oddswire completion zsh > DIRECTORY_OF_FPATH/_oddswire
  fish  oddswire completion fish > ~/.config/fish/completions/oddswire.fish`,
    verbs: SHELLS,
    async run(argv) {
      const shell = verbOf(argv, SHELLS, 'shell');
      rejectArguments(argv.slice(1));
      await print(completionScript(shell, 'oddswire', await completed(entries, command)));
      return 0;
    },
  };
  return command;
}

async function completed(entries: Entries, self: Command): Promise<CompletedCommands> {
  const commands = Object.entries(entries).map(async ([name, { summary, load }]) => {
    const { verbs, options = {} } = name === 'completion' ? self : (await load()).command;
    return [name, { summary, options: { ...options, help: {} }, ...(verbs && { verbs }) }] as const;
  });
  return Object.fromEntries(await Promise.all(commands));
}
