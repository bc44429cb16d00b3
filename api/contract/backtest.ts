import { z } from 'zod';
import { RESOLUTION_STATES } from '../../src/domain/markets/resolution.ts';
import { MAX_EPOCH_SECONDS } from '../../src/domain/values/time-range.ts';
import { BACKTEST_ERRORS, BACKTEST_STATES } from '../../src/store/alerts/backtest/jobs.ts';
import { AT_ONCE_LIMITS } from '../../src/store/alerts/backtest/request.ts';
import { createAlertBody, createAlertExample, firingFields } from './alert.ts';
import { correctionShape } from './events/schema.ts';
import { BACKTEST_ID_EXAMPLE, count, isoTime, opaqueId, storableMs } from './wire.ts';

const NOT_A_TIME = 'must be an ISO 8601 time with an offset, or epoch seconds until the year 9999';
const time = (description: string) =>
  z
    .union(
      [
        z.iso.datetime({ offset: true }).transform(storableMs),
        z
          .int()
          .min(0)
          .max(MAX_EPOCH_SECONDS)
          .transform((seconds) => seconds * 1_000),
      ],
      NOT_A_TIME,
    )
    .meta({
      description,
      override: {
        anyOf: [
          { type: 'string', format: 'date-time' },
          { type: 'integer', minimum: 0, maximum: MAX_EPOCH_SECONDS },
        ],
      },
    });

/** The body of a backtest. `venues` are the venues with markets. */
export function backtestBody(venues: readonly string[]) {
  return z
    .strictObject({
      alert: createAlertBody(venues).meta({ description: 'A body of `POST /v1/alerts`. Nothing is created.' }),
      start: time('The creation of the alert: an ISO 8601 time with an offset, or epoch seconds.'),
      end: time('The first moment that does not count, after `start` and not in the future.'),
      atOnce: z
        .boolean('must be true or false')
        .optional()
        .meta({
          description: `With \`true\`: answers at once or with 409 \`backtest_needs_job\`, and makes no job. At most ${AT_ONCE_LIMITS.rows.toLocaleString('en-US')} observations of ${AT_ONCE_LIMITS.markets} markets.`,
        }),
    })
    .refine(({ start, end }) => end > start, { path: ['end'], message: 'must be after start' });
}
export type BacktestBody = z.output<ReturnType<typeof backtestBody>>;

const backtestFiring = firingFields
  .extend({
    status: z
      .string()
      .optional()
      .meta({ description: 'Of a market, for the conditions `status`, `new_market` and `resolution`.' }),
    previousStatus: z.string().optional(),
    winningOutcomeId: z.string().optional(),
    resolutionState: z.enum(RESOLUTION_STATES).optional(),
    ...correctionShape,
  })
  .meta({ description: 'A firing of a backtest, or a correction.' });

const backtestGap = z
  .object({
    start: isoTime,
    end: isoTime,
    cause: z.string().meta({
      description:
        'The cause of a gap of a feed, `missing_trades`, `late_trades`, `polls_of_prices` or `polls_of_trades`: docs/alerts.md.',
    }),
    venue: z.string(),
    markets: count.meta({ description: 'Markets of the alert that it concerns.' }),
  })
  .meta({ description: 'A time in which observations may be missing.' });

export const backtestResult = z
  .object({
    firings: z.array(backtestFiring).meta({ description: 'The first 1,000 firings, oldest first.' }),
    corrections: z.array(backtestFiring).optional().meta({
      description:
        'Of the condition `status`: the first 1,000 corrections of a reported result that are no firings, oldest first.',
    }),
    firingCount: count.meta({ description: 'All firings. Greater than the number in `firings` when these are cut.' }),
    observations: count.meta({ description: 'The observations, or changes of markets, from `start` until `end`.' }),
    gaps: z.array(backtestGap).meta({ description: 'The first 100 gaps within the range, oldest first.' }),
    approximate: z.boolean().meta({
      description: 'Whether observations of the range are no longer kept. Quotes of price history replace them.',
    }),
    exactFrom: isoTime.optional().meta({ description: 'With `approximate`: the observations from here on are kept.' }),
  })
  .meta({ description: 'The firings that an alert would have had.' });
export type BacktestResultBody = z.output<typeof backtestResult>;

export const backtestJob = z
  .object({
    id: opaqueId,
    state: z.enum(BACKTEST_STATES),
    progress: z.number().min(0).max(1).meta({ description: 'The finished share.' }),
    createdAt: isoTime,
    finishedAt: isoTime.optional(),
    result: backtestResult.optional().meta({ description: 'Present when the state is `done`.' }),
    error: z
      .object({ code: z.enum(BACKTEST_ERRORS), message: z.string() })
      .optional()
      .meta({ description: 'Present when the state is `failed`.' }),
  })
  .meta({ description: 'A backtest that runs as a job. It is kept for 24 hours after its end.' });
export type BacktestJobBody = z.output<typeof backtestJob>;

export const backtestExample: z.input<ReturnType<typeof backtestBody>> = {
  alert: createAlertExample,
  start: '2026-01-01T00:00:00Z',
  end: '2026-01-02T00:00:00Z',
};

export const backtestResultExample: BacktestResultBody = {
  firings: [],
  firingCount: 0,
  observations: 4_211,
  gaps: [
    {
      start: '2026-01-01T10:00:00.000Z',
      end: '2026-01-01T10:00:12.500Z',
      cause: 'disconnected',
      venue: 'polymarket',
      markets: 1,
    },
  ],
  approximate: false,
};

export const backtestJobExample: BacktestJobBody = {
  id: BACKTEST_ID_EXAMPLE,
  state: 'queued',
  progress: 0,
  createdAt: '2026-01-02T03:04:05.678Z',
};
