import type { AttemptErrorCode } from '../../../../src/domain/webhooks/event.ts';
import { ago, duration, type Html, html, type Tone } from '../../kit/html.ts';
import type { Attempt, Delivery } from '../answers.ts';

/** The fault of a delivery, and the next step of its owner. */
interface Verdict {
  tone: Tone;
  /** One sentence. */
  what: Html;
  /** The next step; absent when there is none. */
  advice?: string | undefined;
}

interface Reason {
  /** The receiver as the subject: "Your receiver …". */
  what: string;
  advice: string;
}

const REASONS: Readonly<Record<Exclude<AttemptErrorCode, 'http_status' | 'redirect'>, Reason>> = {
  dns_error: {
    what: 'has a name that DNS does not know',
    advice: 'Check the host name in the address of the webhook, and its DNS records.',
  },
  connect_timeout: {
    what: 'accepted no connection within 5 seconds',
    advice: 'Check that the server runs, and that its firewall admits oddswire.',
  },
  connection_refused: {
    what: 'refused the connection',
    advice: 'Check that the server runs and listens on the port of the address.',
  },
  connection_reset: {
    what: 'closed the connection before it answered',
    advice: 'Look for a crash or a limit of the server or of its proxy at the time of the attempt.',
  },
  timeout: {
    what: 'did not answer before the deadline',
    advice: 'Answer with 2xx at once, and do slow work afterwards.',
  },
  tls_error: {
    what: 'has a TLS certificate or protocol that oddswire rejects',
    advice: 'Check that the certificate is valid for this name, has not expired, and comes with its chain.',
  },
  header_overflow: {
    what: 'answered with more than 16 KiB of headers',
    advice: 'Shorten the headers of the answer, often cookies.',
  },
  blocked_address: {
    what: 'has a private or reserved address, which oddswire never calls',
    advice: 'Use a public address, or a tunnel to a local receiver.',
  },
  invalid_url: {
    what: 'has an address that oddswire cannot call',
    advice: 'Edit the address of the webhook.',
  },
  protocol_error: {
    what: 'gave an answer other than HTTP, or its secret cannot be read',
    advice: 'Check that the address speaks HTTPS. If it does, rotate the secret of the webhook.',
  },
};

/** Advice on a status other than 2xx. */
function statusAdvice(status: number): string {
  if (status === 401 || status === 403)
    return 'Check that it verifies the signature with the present secret, over the raw body.';
  if (status === 404 || status === 405) return 'Check the path in the address of the webhook, and that it takes POST.';
  if (status === 410) return 'The answer 410 paused the webhook. Resume it when the receiver takes events again.';
  if (status === 413) return 'Raise the limit of the receiver for bodies.';
  if (status === 429) return 'Limit the attempts per second of the webhook, or raise the limit of the receiver.';
  if (status >= 500) return 'Look at the log of your receiver at the time of the attempt.';
  return 'Answer with 2xx when your receiver has taken the event.';
}

/** The outcome of a failed attempt, with the receiver as the subject. */
function failureReason({ errorCode, statusCode }: Pick<Attempt, 'errorCode' | 'statusCode'>): Reason {
  if (errorCode === 'redirect') {
    return {
      what: `answered ${statusCode ?? 'a redirect'}, and oddswire follows no redirect`,
      advice: 'Enter the final address as that of the webhook. The header location of the answer names it.',
    };
  }
  if (errorCode !== undefined && Object.hasOwn(REASONS, errorCode)) return REASONS[errorCode as keyof typeof REASONS];
  if (statusCode !== undefined) return { what: `answered ${statusCode}`, advice: statusAdvice(statusCode) };
  return {
    what: `was not called: ${errorCode ?? 'unknown error'}`,
    advice: 'The fault is at oddswire, and used up no attempt. If it lasts, tell the operator.',
  };
}

/** The newest attempts with the same failure. */
function sameFailures(log: readonly Attempt[]): number {
  const last = log.at(-1);
  if (last === undefined) return 0;
  const isSame = ({ outcome, errorCode, statusCode }: Attempt) =>
    outcome === 'failed' && errorCode === last.errorCode && statusCode === last.statusCode;
  const other = log.findLastIndex((each) => !isSame(each));
  return log.length - 1 - other;
}

function lastAttempts(count: number, total: number): string {
  if (count <= 1) return total <= 1 ? 'the only attempt' : 'the last attempt';
  return count === total ? `all ${count} attempts` : `the last ${count} attempts`;
}

/** The state of a delivery in one sentence, with the next step. */
export function deliveryVerdict(delivery: Delivery & { attemptLog: readonly Attempt[] }, nowMs: number): Verdict {
  const {
    status,
    attempts,
    attemptLog: log,
    nextAttemptAt,
    lastError,
    lastStatusCode,
    deliveredAt,
    createdAt,
  } = delivery;
  const next = nextAttemptAt === undefined ? undefined : new Date(nextAttemptAt);
  const isDue = next !== undefined && next.getTime() <= nowMs;
  const when =
    next === undefined
      ? html``
      : isDue
        ? html`The next attempt is due now.`
        : html`The next attempt is ${ago(next, nowMs)}.`;
  const last = { errorCode: lastError, statusCode: lastStatusCode };
  const failure = () => {
    const { what, advice } = failureReason(last);
    return { sentence: html`Your receiver ${what} in ${lastAttempts(sameFailures(log), attempts)}.`, advice };
  };
  if (status === 'delivered') {
    const took = deliveredAt === undefined ? undefined : Date.parse(deliveredAt) - Date.parse(createdAt);
    const after = took !== undefined && html`, ${duration(Math.max(0, took))} after the event was stored`;
    return { tone: 'good', what: html`Your receiver accepted the event with ${lastStatusCode ?? '2xx'}${after}.` };
  }
  if (status === 'pending') {
    if (attempts === 0) {
      if (lastError !== undefined)
        return {
          tone: 'warn',
          what: html`oddswire could not make the attempt: a fault on its side. ${when}`,
          advice: failureReason(last).advice,
        };
      if (next !== undefined) return { tone: 'idle', what: html`No attempt yet. ${when}` };
      return {
        tone: 'idle',
        what: html`The event waits for an earlier one of its key, because the webhook is ordered.`,
      };
    }
    if (lastError === undefined) return { tone: 'idle', what: html`The event is sent again. ${when}` };
    const { sentence, advice } = failure();
    return { tone: 'warn', what: html`${sentence} ${when}`, advice };
  }
  if (status === 'cancelled') {
    return {
      tone: 'warn',
      what: html`The delivery was cancelled, because the webhook was paused${attempts > 0 && lastError !== undefined && html`. Before that, your receiver ${failureReason(last).what}`}.`,
      advice: 'Resume the webhook and press Recover there, or press Send again here.',
    };
  }
  const { sentence, advice } = failure();
  const skipped = delivery.skipped === true && html` Later events of its key were sent without it.`;
  return {
    tone: 'bad',
    what: html`${sentence} No further attempt follows.${skipped}`,
    advice: `${advice} Then press Send again.`,
  };
}

/** The verdict at the top of a page. */
export function verdictText({ tone, what, advice }: Verdict): Html {
  return html`<div class="verdict ${tone}"><p>${what}</p>${advice !== undefined && html`<p class="advice">${advice}</p>`}</div>`;
}
