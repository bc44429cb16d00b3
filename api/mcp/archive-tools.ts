import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';
import { ARCHIVE_KIND_NAMES } from '../../src/domain/archive/kinds.ts';
import { type RouteCalls, toolResult } from './tool-result.ts';

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
