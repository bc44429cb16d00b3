import { OddswireError } from '../../src/domain/values/errors.ts';
import { openDeadline } from '../../src/domain/values/signals.ts';

const ANSWER_MS = 5_000;

/** Resolves when the API and its dependencies are ready. @throws an error that states the reason to wait */
export async function assertReady(apiUrl: string, signal: AbortSignal): Promise<void> {
  const deadline = openDeadline([signal], ANSWER_MS);
  try {
    const response = await fetch(`${apiUrl}/health/ready`, { signal: deadline.signal });
    await response.arrayBuffer();
    if (!response.ok) throw new OddswireError('not_ready', `the API answered ${response.status}`, { retryable: true });
  } finally {
    deadline.close();
  }
}
