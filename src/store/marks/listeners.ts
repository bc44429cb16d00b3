import { BROADCAST_EVENTS, type BroadcastEvent } from '../../domain/webhooks/event.ts';

const textArray = (types: readonly BroadcastEvent[]) => `ARRAY[${types.map((type) => `'${type}'`).join(', ')}]::text[]`;

/** SQL of whether webhook `w` exists and lists a broadcast. A partial index has this condition, word by word. */
export const LISTENS = `w.deleted_at IS NULL AND w.events && ${textArray(BROADCAST_EVENTS)}`;

/** SQL of whether any webhook lists one of these broadcasts: one look into an index that is empty without such webhooks. */
export function hasListeners(...types: BroadcastEvent[]): string {
  return `(SELECT EXISTS (SELECT FROM webhook_subscription w WHERE ${LISTENS} AND w.events && ${textArray(types)}))`;
}
