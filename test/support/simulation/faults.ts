// Decides at which statements and calls a simulated coordinator fails, hangs or is killed.
import type { FaultPoint } from './killable-driver.ts'

/** Probabilities per statement or call, and how many faults a history has at most. */
export type FaultProfile = { fail: number; hang: number; kill: number; budget: number }

export type Faults = {
  /** Whether faults are injected. */
  enabled: boolean
  /** The faults so far, for the report of a failed history. */
  readonly log: string[]
  /** Creates the fault point of one coordinator. */
  createPoint(): KillablePoint
}

export type KillablePoint = FaultPoint & {
  kill(): void
  /** Before or after a call of a provider. */
  call(name: string): Promise<void>
}

export function createFaults(random: () => number, profile: FaultProfile): Faults {
  let remaining = profile.budget
  const faults: Faults = {
    enabled: true,
    log: [],
    createPoint() {
      let killed = false
      const listeners: (() => void)[] = []
      const kill = () => {
        if (killed) return
        killed = true
        for (const listener of listeners) listener()
      }
      async function inject(name: string, canFail: boolean): Promise<void> {
        if (killed) return new Promise(() => undefined)
        if (!faults.enabled || remaining <= 0) return
        const value = random()
        const isKill = value < profile.kill
        const isHang = !isKill && canFail && value < profile.kill + profile.hang
        const isFailure = !isKill && !isHang && canFail && value < profile.kill + profile.hang + profile.fail
        if (!isKill && !isHang && !isFailure) return
        remaining -= 1
        faults.log.push(`${isKill ? 'kill' : isHang ? 'hang' : 'fail'} at ${name}`)
        if (isFailure) throw new Error(`simulated failure of ${name}`)
        if (isKill) kill()
        return new Promise(() => undefined)
      }
      return {
        kill,
        isKilled: () => killed,
        onKill: (listener) => void listeners.push(listener),
        pass: () => inject('a statement', false),
        call: (name) => inject(name, true),
      }
    },
  }
  return faults
}
