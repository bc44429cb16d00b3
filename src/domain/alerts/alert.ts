export const ALERT_CONDITIONS = ['above', 'below'] as const;
export type AlertCondition = (typeof ALERT_CONDITIONS)[number];

export const ALERT_STATUSES = ['active', 'triggered', 'expired'] as const;
export type AlertStatus = (typeof ALERT_STATUSES)[number];

/** A trade print received later than this after its venue time fires no alert. */
export const STALE_OBSERVATION_MS = 600_000;
