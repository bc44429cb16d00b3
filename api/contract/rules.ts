import { z } from 'zod';
import { param } from '../http/input.ts';
import { epochTime, MARKET_ID_EXAMPLE, opaqueId } from './wire.ts';

const versionNumber = z.int().min(1).meta({ description: 'From 1, without gaps.' });
const hash = z.string().meta({
  description:
    'sha256 in hexadecimal of the text and, when there is a source, a line feed and the source; each run of white space is one space, none at the ends.',
});
const since = epochTime.meta({ description: 'When oddswire stored this version first.' });

const diffParts = z.array(z.object({ op: z.enum(['equal', 'insert', 'delete']), text: z.string() })).optional();

/** The rules of a market and their versions. */
export const marketRules = z
  .object({
    market_id: opaqueId,
    version: versionNumber,
    text: z.string().meta({ description: 'Empty when the venue states none any more.' }),
    settlement_source: z
      .string()
      .optional()
      .meta({ description: 'Where the venue reads the result, if it states it.' }),
    hash,
    since,
    read_at: epochTime
      .optional()
      .meta({ description: 'The venue last sent these rules at this time or later. Absent with `as_of`.' }),
    versions: z.array(z.object({ version: versionNumber, hash, since })).meta({ description: 'Oldest first.' }),
    diff: diffParts.meta({
      description:
        'With `from` and `to`: the parts of both texts in order. Without the insertions they are the text of `from`, without the deletions that of `to`.',
    }),
    settlement_source_diff: diffParts.meta({ description: 'The same of the sources, when they differ.' }),
  })
  .meta({ description: 'The rules of a market: the text and the settlement source. Unknown fields are absent.' });
export type MarketRulesBody = z.output<typeof marketRules>;

const HASHES = [
  '3a15b80f92689faaa0adec91f4b753b08cf7c8b6137185a2d15bc6be64710ed2',
  '4fec67d12b3194e826972c32cdf8ab630df0f45733e436740a270a52273fb348',
] as const;

export const marketRulesExample: MarketRulesBody = {
  market_id: MARKET_ID_EXAMPLE,
  version: 2,
  text: 'The statement published after the April meeting.',
  settlement_source: 'https://example.com/statements',
  hash: HASHES[1],
  since: 1767312000,
  read_at: 1767323040,
  versions: [
    { version: 1, hash: HASHES[0], since: 1764547260 },
    { version: 2, hash: HASHES[1], since: 1767312000 },
  ],
  diff: [
    { op: 'equal', text: 'The statement published after the ' },
    { op: 'delete', text: 'March' },
    { op: 'insert', text: 'April' },
    { op: 'equal', text: ' meeting.' },
  ],
};

export const marketRulesQuery = z.object({
  as_of: param.asOf,
  from: param.version.meta({ description: 'The older version of a comparison. With `to`.' }),
  to: param.version.meta({ description: 'The newer version of a comparison. With `from`.' }),
});
