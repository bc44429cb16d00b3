import { completionScript, SHELLS } from '../../../../cli/completion.ts';
import { printable } from '../../../../src/domain/values/text.ts';
import type { Call, CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { COMMON } from '../read-arguments.ts';
import { SIGN } from '../short-ids/short-id.ts';

const IDS = 'ids';

export const completion: CliCommand = {
  summary: 'Prints the completion for a shell.',
  forms: ['completion bash|zsh|fish', 'completion ids'],
  verbs: [...SHELLS, IDS],
  options: {},
  words: [1, 1],
  notes: `  bash  source <(oddswire-cli completion bash)
  zsh   source <(oddswire-cli completion zsh)
  fish  oddswire-cli completion fish | source
The scripts complete short ids with the lines of \`completion ids\`: the ids of the listings on this machine, each with its name.`,
  async run(call) {
    if (call.words[0] === IDS) return printIds(call);
    const shell = SHELLS.find((name) => name === call.words[0]) ?? 'bash';
    const commands = Object.entries(call.commands).map(([name, command]) => [
      name,
      { ...command, options: { ...command.options, ...COMMON } },
    ]);
    await call.print(
      completionScript(shell, 'oddswire-cli', Object.fromEntries(commands), { sign: SIGN, call: `completion ${IDS}` }),
    );
    return EXIT.done;
  },
};

/** A line per known short id: the id, a tab and the name. */
async function printIds(call: Call): Promise<number> {
  const known = await call.knownIds();
  const lines = known.markets.flatMap(({ venue, id, title, outcomes }) => [
    `${known.shortIdOf('market', venue, id)}\t${printable(title)}\n`,
    ...outcomes.map(
      (each) => `${known.shortIdOf('outcome', venue, each.id)}\t${printable(`${title}: ${each.label}`)}\n`,
    ),
  ]);
  await call.print(lines.join(''));
  return EXIT.done;
}
