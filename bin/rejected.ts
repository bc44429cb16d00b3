import { listQuarantine, summarizeQuarantine } from '../src/store/catalog/quarantine-reads.ts';
import { type CommandContext, operatorCommand } from './operator-command.ts';
import { print } from './output/print.ts';
import {
  parseRejectedArguments,
  REJECTED_OPTIONS,
  REJECTED_USAGE,
  type RejectedOptions,
} from './rejected/arguments.ts';
import { rejectionsJson, rejectionsText } from './rejected/report.ts';

/** `oddswire rejected`: the rejected records of the venues, with reasons. */
export const command = operatorCommand<RejectedOptions>({
  name: 'rejected',
  usage: REJECTED_USAGE,
  options: REJECTED_OPTIONS,
  parse: (argv) => parseRejectedArguments(argv, Date.now()),
  run: showRejected,
});

async function showRejected(options: RejectedOptions, { db }: CommandContext): Promise<number> {
  const { limit, json, sample, ...filter } = options;
  const summary = await summarizeQuarantine(db, filter);
  const { entries, next } =
    limit === 0 ? { entries: [], next: undefined } : await listQuarantine(db, filter, { limit });
  const rejections = { summary, entries, hasMore: next !== undefined };
  await print(json ? `${rejectionsJson(rejections, sample)}\n` : rejectionsText(rejections, sample));
  return 0;
}
