/** The reason of a failed attempt. Stable: stored with the attempt, shown to clients and used as a metric label. */
export type AttemptErrorCode =
  | 'dns_error'
  | 'connect_timeout'
  | 'connection_refused'
  | 'connection_reset'
  | 'timeout'
  | 'tls_error'
  | 'header_overflow'
  | 'blocked_address'
  | 'invalid_url'
  | 'redirect'
  | 'http_status'
  | 'protocol_error';
