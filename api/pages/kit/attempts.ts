import type { AttemptBody } from '../../contract/delivery.ts';
import {
  badge,
  code,
  duration,
  emptyState,
  type Html,
  type HtmlValue,
  html,
  NONE,
  number,
  table,
  time,
} from './html.ts';
import { hexDump, prettyJson } from './pretty-json.ts';

/** The delivery of the attempts, times in epoch milliseconds. */
interface AttemptSeries {
  log: readonly AttemptBody[];
  /** All attempts, also those whose log retention has deleted. */
  count: number;
  createdMs: number;
  /** Absent: no attempt follows. */
  nextMs?: number | undefined;
  nowMs: number;
}

/** The drawing of the attempts, and the table with the same facts. */
export function attemptTimeline(series: AttemptSeries): Html {
  const { log, count } = series;
  if (log.length === 0) {
    return emptyState(
      count === 0 ? 'No attempt yet.' : html`The log of ${number(count)} attempts is no longer stored.`,
    );
  }
  return html`${drawing(series)}${attemptTable(series)}`;
}

/** The marks of the axis; the space between two of them is divided evenly, so that seconds and hours are both visible. */
const TICKS = [
  [0, '0'],
  [1_000, '1 s'],
  [10_000, '10 s'],
  [60_000, '1 min'],
  [600_000, '10 min'],
  [3_600_000, '1 h'],
  [36_000_000, '10 h'],
  [172_800_000, '2 d'],
  [864_000_000, '10 d'],
  [8_640_000_000, '100 d'],
] as const;
const BOX = { width: 600, height: 48 };
const HEIGHTS = { delivered: 44, failed: 26, next: 26 } as const;

/** One bar per attempt over the time since the creation of the delivery. Height and colour show the outcome. */
function drawing({ log, createdMs, nextMs, nowMs }: AttemptSeries): Html {
  const marks = log.map(({ attempt, startedAt, outcome }) => ({
    ms: Date.parse(startedAt) - createdMs,
    kind: outcome,
    title: `#${attempt} ${outcome}`,
  }));
  const all =
    nextMs === undefined
      ? marks
      : [...marks, { ms: Math.max(nextMs, nowMs) - createdMs, kind: 'next' as const, title: 'next attempt' }];
  const longest = Math.max(...all.map(({ ms }) => ms));
  const last = Math.max(
    1,
    TICKS.findIndex(([ms]) => ms >= longest),
  );
  const ticks = longest > (TICKS.at(-1)?.[0] ?? 0) ? TICKS : TICKS.slice(0, last + 1);
  const x = (ms: number) =>
    placeOf(
      ms,
      ticks.map(([at]) => at),
    ) *
      (BOX.width - 8) +
    4;
  const bars = all.map(({ ms, kind, title }) => {
    const place = x(ms).toFixed(1);
    return html`<path class="${kind}" d="M${place} ${BOX.height}V${BOX.height - HEIGHTS[kind]}"><title>${title} after ${duration(Math.max(0, ms))}</title></path>`;
  });
  const failed = log.filter(({ outcome }) => outcome === 'failed').length;
  const label = `${log.length} attempts, ${failed} failed; the table below has each of them`;
  return html`<figure class="card timeline">
<figcaption><span class="key delivered">delivered</span> <span class="key failed">failed</span>${
    nextMs !== undefined && html` <span class="key next">next attempt</span>`
  } <span class="muted">time since the event was stored</span></figcaption>
<svg class="attempts" viewBox="0 0 ${BOX.width} ${BOX.height}" preserveAspectRatio="none" role="img" aria-label="${label}"><path class="base" d="M0 ${BOX.height}H${BOX.width}"/>${bars}</svg>
<div class="axis" aria-hidden="true">${ticks.map(([, text]) => html`<span>${text}</span>`)}</div></figure>`;
}

/** The place between 0 and 1 of a time on an axis with evenly spaced marks. */
function placeOf(ms: number, marks: readonly number[]): number {
  const above = marks.findIndex((mark) => mark > ms);
  if (above === -1) return 1;
  if (above === 0) return 0;
  const [from = 0, to = 1] = [marks[above - 1], marks[above]];
  return (above - 1 + (ms - from) / (to - from)) / (marks.length - 1);
}

function attemptTable({ log, createdMs, nextMs, nowMs }: AttemptSeries): Html {
  const startOf = ({ startedAt }: AttemptBody) => Date.parse(startedAt);
  const waits = new Map(
    log.map((each, index) => {
      const following = log[index + 1];
      return [each.attempt, following === undefined ? nextMs : startOf(following)] as const;
    }),
  );
  return table<AttemptBody>({
    caption: 'Attempts, oldest first',
    columns: [
      { label: 'Attempt', cell: ({ attempt }) => html`<a href="#attempt-${attempt}">#${attempt}</a>` },
      { label: 'Started (UTC)', cell: (each) => time(new Date(startOf(each))) },
      { label: 'After', cell: (each) => duration(Math.max(0, startOf(each) - createdMs)) },
      { label: 'Result', cell: attemptResult },
      { label: 'Duration', cell: ({ durationMs }) => html`${number(durationMs)} ms`, isNumeric: true },
      {
        label: 'Next after',
        isNumeric: true,
        cell: (each) => {
          const next = waits.get(each.attempt);
          if (next === undefined) return NONE;
          const isAhead = next === nextMs && next > nowMs && each === log.at(-1);
          return html`${duration(Math.max(0, next - startOf(each)))}${isAhead && html` <span class="muted">planned</span>`}`;
        },
      },
    ],
    rows: log,
    empty: '',
  });
}

function attemptResult({ outcome, errorCode, statusCode }: AttemptBody): Html {
  const words = errorCode === 'http_status' ? 'answered' : errorCode;
  const text = [words, statusCode].filter((each) => each !== undefined).join(' ');
  return badge(outcome === 'delivered' ? 'good' : 'bad', text || outcome);
}

/** The answer of each attempt with its headers, newest first. `isCopied`: the page has a script for copy buttons. */
export function attemptAnswers(log: readonly AttemptBody[], { isCopied }: { isCopied: boolean }): Html {
  return html`${log.toReversed().map((each, index) => {
    const { attempt, startedAt, durationMs } = each;
    return html`<details class="card attempt" id="attempt-${attempt}"${index === 0 && html` open`}>
<summary><span class="attempt-name">#${attempt}</span> ${attemptResult(each)} <span class="muted">${time(new Date(startedAt))} · ${number(durationMs)} ms</span></summary>
${answer(each, isCopied)}</details>`;
  })}`;
}

function answer(attempt: AttemptBody, isCopied: boolean): Html {
  if (attempt.statusCode === undefined)
    return html`<p class="hint">The receiver gave no answer, so there are no headers and no body.</p>`;
  return html`${headers(attempt)}${responseBody(attempt, isCopied)}`;
}

function headers({
  attempt,
  responseHeaders,
  responseHeadersRemoved = 0,
  responseHeadersOmitted = 0,
}: AttemptBody): Html {
  if (responseHeaders === undefined) {
    return html`<p class="hint">The headers of this answer are not stored: an earlier release of oddswire made the attempt.</p>`;
  }
  const left = [
    responseHeadersRemoved > 0 && html`${plural(responseHeadersRemoved)} not stored: possible secrets.`,
    responseHeadersOmitted > 0 && html`${plural(responseHeadersOmitted)} not stored: the limit is 4 KiB.`,
  ].filter((each) => each !== false);
  return html`${table<{ name: string; value: string }>({
    caption: `Headers of the answer to attempt ${attempt}`,
    columns: [
      { label: 'Header', cell: ({ name }) => code(name) },
      { label: 'Value', cell: ({ value }) => html`<span class="long">${value}</span>` },
    ],
    rows: responseHeaders,
    empty: left.length === 0 ? 'The answer has no headers.' : 'No header is stored.',
  })}${left.map((text) => html`<p class="hint">${text}</p>`)}`;
}

const plural = (count: number) => (count === 1 ? '1 header is' : `${count} headers are`);

/** JSON gets line breaks; bytes that are no text are a hex dump. */
function responseBody({ attempt, responseBody: body = '', responseEncoding }: AttemptBody, isCopied: boolean): Html {
  if (body === '') return html`<p class="hint">The body is empty.</p>`;
  const isText = responseEncoding === undefined;
  const text = isText ? (isJson(body) ? prettyJson(body) : body) : hexDump(Buffer.from(body, 'base64'));
  return copiedText({
    id: `answer-${attempt}`,
    label: `Answer to attempt ${attempt}`,
    text,
    isCopied,
    hint: isText ? undefined : 'The body is not text. oddswire stores its first 4 KiB.',
  });
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** A text in a fixed-width face, with a button that copies it. */
export function copiedText(options: {
  id: string;
  label: string;
  text: HtmlValue;
  isCopied: boolean;
  hint?: HtmlValue;
}): Html {
  const { id, label, text, isCopied, hint } = options;
  return html`${hint !== undefined && html`<p class="hint">${hint}</p>`}<div class="code">${
    isCopied && html`<button type="button" class="copy" data-copy-from="${id}" data-copy>Copy</button>`
  }<pre id="${id}" tabindex="0" aria-label="${label}">${text}</pre></div>`;
}
