// When a peer that went silent counts as gone: the judgement alone, without timers or sockets.

export type LivenessSettings = {
  /** How often the check runs, in milliseconds. */
  tickMs: number
  /** A ping goes out after about this long without one (± 20 %). */
  pingEveryMs: number
  /** Silence after which the peer is gone. */
  deadAfterMs: number
}

export const LIVENESS: LivenessSettings = { tickMs: 2500, pingEveryMs: 15_000, deadAfterMs: 45_000 }

export type Pulse = {
  /** Bytes received in all, when last looked at. Any inbound byte is a sign of life. */
  bytes: number
  silentMs: number
  untilPingMs: number
}

export const newPulse = (settings: LivenessSettings, random: () => number): Pulse => ({
  bytes: 0,
  silentMs: 0,
  untilPingMs: pingDelay(settings, random),
})

/**
 * One check. Silence is the sum of checks that ran on time, so a clock that jumps, a machine that slept or an
 * event loop that was blocked never condemns a peer whose bytes we did not get round to reading.
 */
export function checkPulse(
  pulse: Pulse,
  seen: { bytes: number; elapsedMs: number },
  settings: LivenessSettings,
  random: () => number,
): 'quiet' | 'ping' | 'dead' {
  const late = seen.elapsedMs > settings.tickMs * 2
  const elapsed = Math.max(0, late ? settings.tickMs : seen.elapsedMs)
  if (seen.bytes !== pulse.bytes) {
    pulse.bytes = seen.bytes
    pulse.silentMs = 0
  } else if (!late) {
    pulse.silentMs += elapsed
  }
  if (!late && pulse.silentMs >= settings.deadAfterMs) return 'dead'
  pulse.untilPingMs -= elapsed
  if (pulse.untilPingMs > 0) return 'quiet'
  pulse.untilPingMs = pingDelay(settings, random)
  return 'ping'
}

function pingDelay(settings: LivenessSettings, random: () => number): number {
  return settings.pingEveryMs * (0.8 + 0.4 * random())
}
