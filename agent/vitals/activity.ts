// What makes a box non-idle: requests to it, and commands that run on it.
import type { Clock } from '../../shared/clock.ts'

export type Activity = {
  /** Something was asked of the box just now. */
  touch(): void
  /** Something runs from now on; call the answer when it has ended (calling it again changes nothing). */
  begin(): () => void
  /** Whole seconds since the last of both; 0 while something runs. */
  idleSeconds(): number
}

export function createActivity(clock: Clock): Activity {
  let running = 0
  let last = clock.now()
  const touch = () => {
    last = clock.now()
  }
  return {
    touch,
    begin() {
      let ended = false
      running++
      return () => {
        if (ended) return
        ended = true
        running--
        touch()
      }
    },
    // A clock that was set back must not make the box busy for as long, nor idle for less than nothing.
    idleSeconds: () => (running > 0 ? 0 : Math.max(0, Math.floor((clock.now() - last) / 1000))),
  }
}
