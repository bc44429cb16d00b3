import { completionScript, SHELLS } from '../../../../cli/completion.ts';
import type { CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { COMMON } from '../read-arguments.ts';

export const completion: CliCommand = {
  summary: 'Prints the completion for a shell.',
  forms: ['completion bash|zsh|fish'],
  verbs: SHELLS,
  options: {},
  words: [1, 1],
  notes: `  bash  source <(oddswire-cli completion bash)
  zsh   source <(oddswire-cli completion zsh)
  fish  oddswire-cli completion fish | source`,
  async run(call) {
    const shell = SHELLS.find((name) => name === call.words[0]) ?? 'bash';
    const commands = Object.entries(call.commands).map(([name, command]) => [
      name,
      { ...command, options: { ...command.options, ...COMMON } },
    ]);
    await call.print(completionScript(shell, 'oddswire-cli', Object.fromEntries(commands)));
    return EXIT.done;
  },
};
