import type { CliCommand } from '../command.ts';
import { completionScript, SHELLS } from '../completion-script.ts';
import { EXIT } from '../exit-codes.ts';

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
    await call.print(completionScript(shell, call.commands));
    return EXIT.done;
  },
};
