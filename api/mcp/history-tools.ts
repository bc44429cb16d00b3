import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';
import { ARCHIVE_KIND_NAMES } from '../../src/domain/archive/kinds.ts';
import { COVERAGE_KINDS, HOUR_MS } from '../../src/domain/markets/coverage.ts';
import type { CoverageHourBody } from '../contract/completeness.ts';
import { type RouteCalls, toolResult } from './tool-result.ts';

/** A model reads every row. */
const MAX_HOURS = 100;
const MAX_SPAN_HOURS = 1_000;
const HOUR_SECONDS = HOUR_MS / 1000;
const moment = z.number().int().nonnegative().optional();

/** The tool that reads whether the stored data is complete. */
export function addCoverageTools(server: McpServer, calls: RouteCalls): void {
  server.registerTool(
    'get_coverage',
    {
      title: 'Read whether stored data is complete',
      description:
        'Each hour of a venue or a market is complete, quiet (no trades), observed (polls without a pause), gap (data is missing, with its ' +
        '`cause`) or unknown (nothing is proven, with its `reason`). Spans join equal hours that follow each other; hours have the volumes. ' +
        'Read it before a conclusion from missing trades or prices.',
      inputSchema: z.strictObject({
        venue: z.string().optional().describe('The name of a venue, such as kalshi. Default: all venues.'),
        market_id: z.string().min(1).optional().describe('market_id of search_markets. Default: the venue as a whole.'),
        kind: z.enum(COVERAGE_KINDS).default('trades').describe('Candles follow the trades.'),
        start: moment.describe('Epoch seconds. Default: 300 hours ago.'),
        end: moment.describe('Epoch seconds, exclusive. At most 5,000 hours after start.'),
        form: z
          .enum(['spans', 'hours'])
          .default('spans')
          .describe(`Up to ${MAX_SPAN_HOURS} hours as spans, or up to ${MAX_HOURS} hours with volumes and bounds.`),
        cursor: z.string().optional().describe('next_cursor of the previous page, with the same other arguments.'),
      }),
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    ({ venue = 'all', form, ...asked }) =>
      toolResult(calls, async () => {
        const limit = form === 'hours' ? MAX_HOURS : MAX_SPAN_HOURS;
        const { data, meta } = await calls.get(`/v1/${encodeURIComponent(venue)}/coverage`, { ...asked, limit });
        const hours = data as CoverageHourBody[];
        const { settled_to, next_cursor } = meta;
        return {
          ...(form === 'hours' ? { hours } : { spans: spansOf(hours) }),
          settled_to: settled_to ?? null,
          next_cursor: next_cursor ?? null,
        };
      }),
  );
}

type Span = Pick<CoverageHourBody, 'venue' | 'start' | 'class' | 'cause' | 'reason'> & { end: number };

/** Joins equal hours that follow each other, by venue; hours of several venues alternate. */
function spansOf(hours: readonly CoverageHourBody[]): Span[] {
  const spans: Span[] = [];
  const latest = new Map<string, Span>();
  for (const { venue, start, class: each, cause, reason } of hours) {
    const span = latest.get(venue);
    const end = start + HOUR_SECONDS;
    if (span?.end === start && span.class === each && span.cause === cause && span.reason === reason) {
      span.end = end;
      continue;
    }
    const next: Span = { venue, start, end, class: each, ...(cause && { cause }), ...(reason && { reason }) };
    latest.set(venue, next);
    spans.push(next);
  }
  return spans;
}

const DEFAULT_DAYS = 31;
/** A model reads every row. */
const MAX_DAYS = 100;
const day = z.string().optional();

/** The tool that reads the list of the archive. A model has no use for the bytes of a file. */
export function addArchiveTools(server: McpServer, calls: RouteCalls): void {
  server.registerTool(
    'list_archive_files',
    {
      title: 'List archived days',
      description:
        'The Parquet files of the archive by kind, venue and UTC day: rows, bytes, sha256, revision. `file` is null for a day that is archived ' +
        'and has no rows; a day that is not listed is not archived. Needs the scope archive.',
      inputSchema: z.strictObject({
        kind: z.enum(ARCHIVE_KIND_NAMES).optional().describe('Only files of this kind.'),
        venue: z.string().optional().describe('Only this venue, such as kalshi.'),
        from: day.describe('The first UTC day, such as 2026-01-31.'),
        to: day.describe('The last UTC day.'),
        limit: z.number().int().min(1).max(MAX_DAYS).default(DEFAULT_DAYS),
        cursor: z.string().optional().describe('next_cursor of the previous page, with the same other arguments.'),
      }),
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    (asked) =>
      toolResult(calls, async () => {
        const { data, meta } = await calls.get('/v1/archive', asked);
        return { files: data, next_cursor: meta.next_cursor ?? null };
      }),
  );
}
