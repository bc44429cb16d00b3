import type { z } from 'zod';
import { type ClientFrame, clientFrame } from '../../contract/live.ts';
import type { ErrorCode } from '../../errors.ts';
import { isMissing } from '../../http/input.ts';

/** The codes with which the server closes a WebSocket. */
export const CLOSE_CODES = {
  /** The process stops: connect again, which another process answers. */
  restarting: 1012,
  /** A frame is not text. */
  unsupported: 1003,
  unauthorized: 4401,
  insufficientScope: 4403,
  /** No key arrived in time. */
  authTimeout: 4408,
  /** The reader is too slow: resume with the cursor of the `lagged` messages. */
  lagged: 4409,
  /** Too many frames, or too many invalid ones. */
  rateLimited: 4429,
  failed: 1011,
} as const;

/** A frame of a client, or the reason of its rejection. */
type ReadFrame = { frame: ClientFrame } | { error: { code: ErrorCode; message: string; id?: string } };

/** Reads a frame of text. Never throws. */
export function readFrame(text: string): ReadFrame {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { error: { code: 'invalid_json', message: 'a frame must be JSON' } };
  }
  const parsed = clientFrame.safeParse(value);
  if (parsed.success) return { frame: parsed.data };
  const id = idOf(value);
  return {
    error: { code: 'invalid_request', message: describe(parsed.error, value), ...(id !== undefined && { id }) },
  };
}

/** The id that the client gave, so that it recognizes the answer. */
function idOf(value: unknown): string | undefined {
  const id = typeof value === 'object' && value !== null && 'id' in value ? value.id : undefined;
  return typeof id === 'string' && id.length <= 64 ? id : undefined;
}

function describe(error: z.ZodError, frame: unknown): string {
  const [issue] = error.issues;
  if (!issue) return 'the frame is not valid';
  const path = issue.path.map(String).join('.');
  if (issue.code === 'invalid_union') return 'type: must be auth, subscribe or unsubscribe';
  if (isMissing(issue, frame)) return `${path}: is required`;
  if (issue.code === 'unrecognized_keys') return `${issue.keys[0]?.slice(0, 64)}: unknown field`;
  if (issue.code === 'invalid_value') return `${path}: must be one of ${issue.values.map(String).join(', ')}`;
  if (issue.code === 'invalid_type') return `${path || 'frame'}: must be of the type ${issue.expected}`;
  return `${path || 'frame'}: is not valid`;
}
