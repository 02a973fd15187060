// Decides when to ping a silent peer and when to treat it as dead. Pure: no timers or sockets.

export type LivenessSettings = {
  /** Interval of the check. */
  tickMs: number
  /** Interval of pings, ± 20 %. */
  pingEveryMs: number
  /** Silence after which the peer counts as dead. */
  deadAfterMs: number
}

export const LIVENESS: LivenessSettings = { tickMs: 2500, pingEveryMs: 15_000, deadAfterMs: 45_000 }

export type LivenessState = {
  /** Total bytes received at the last check. Any inbound byte shows that the peer is alive. */
  bytes: number
  silentMs: number
  untilPingMs: number
}

export const newLivenessState = (settings: LivenessSettings, random: () => number): LivenessState => ({
  bytes: 0,
  silentMs: 0,
  untilPingMs: getPingDelayMs(settings, random),
})

/** A check is late after a clock jump, a freeze of the process, a suspend of the machine, or a blocked event loop. */
export const isLateCheck = (elapsedMs: number, { tickMs }: LivenessSettings): boolean =>
  elapsedMs > tickMs * 2

/**
 * Runs one check and updates `state`. The time before a late check does not count as silence: bytes from the peer may not
 * have been read yet. A late check pings, because the peer may have closed the connection meanwhile.
 * @returns what the caller must do: nothing, send a ping, or close the connection to a dead peer
 */
export function checkLiveness(
  state: LivenessState,
  observed: { bytes: number; elapsedMs: number },
  settings: LivenessSettings,
  random: () => number,
): 'none' | 'ping' | 'dead' {
  const isLate = isLateCheck(observed.elapsedMs, settings)
  const elapsed = Math.max(0, isLate ? settings.tickMs : observed.elapsedMs)
  if (observed.bytes !== state.bytes) {
    state.bytes = observed.bytes
    state.silentMs = 0
  } else if (!isLate) {
    state.silentMs += elapsed
  }
  if (!isLate && state.silentMs >= settings.deadAfterMs) return 'dead'
  state.untilPingMs -= elapsed
  if (state.untilPingMs > 0 && !isLate) return 'none'
  state.untilPingMs = getPingDelayMs(settings, random)
  return 'ping'
}

function getPingDelayMs(settings: LivenessSettings, random: () => number): number {
  return settings.pingEveryMs * (0.8 + 0.4 * random())
}
