/** The size of a backtest. */
export interface WorkLimits {
  markets: number;
  rows: number;
}

/** The bounds of an answer at once, and of a job. */
export const ANSWER_LIMITS: WorkLimits = { markets: 500, rows: 1_000_000 };
/** Of a form that evaluates its alert while its fields change. */
export const AT_ONCE_LIMITS: WorkLimits = { markets: 100, rows: 250_000 };
export const JOB_LIMITS: WorkLimits = { markets: 20_000, rows: 50_000_000 };
