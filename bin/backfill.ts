import { OPTIONS, parseBackfillArguments, USAGE } from './backfill/arguments.ts';
import { runBackfill } from './backfill/run.ts';
import { operatorCommand } from './operator-command.ts';

/** `oddswire backfill`: requests the history of a venue, and shows how the pollers read it. */
export const command = operatorCommand({
  name: 'backfill',
  usage: USAGE,
  options: OPTIONS,
  parse: (argv) => parseBackfillArguments(argv, Date.now()),
  run: runBackfill,
});
