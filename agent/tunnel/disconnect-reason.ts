// Why the agent is not connected.

/**
 * Why an attempt failed or a connection closed. A rejection has its HTTP status, and its error code and message if the
 * coordinator has sent them.
 */
export type DisconnectReason = {
  reason: string
  status?: number
  code?: string
  message?: string
  reconnectAfterMs?: number
}
