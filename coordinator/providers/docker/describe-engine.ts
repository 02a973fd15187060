// Text for people: the engine, how it isolates boxes, and what it cannot do.
import { describeAddress } from '../engine-http/address.ts'
import type { Engine } from './engine.ts'
import type { EngineInfo } from './engine-info.ts'
import type { EngineState } from './engine-state.ts'

const LIMIT_NAMES = { cpu: 'CPU', memory: 'memory', pids: 'number of processes' } as const

/** Returns the text for the startup banner. */
export function describeEngine({ http }: Engine, { latest, problem }: EngineState): string {
  if (problem !== undefined || latest === undefined)
    return problem ?? `${http.name} has not answered yet. Its boxes start when it answers.`
  const { version, limits, canFreeze } = latest
  const limited =
    limits.length === 0
      ? 'Tier limits are not enforced: the engine cannot use cgroups.'
      : `Limits enforced: ${limits.map((name) => LIMIT_NAMES[name]).join(', ')}.`
  return [
    `Boxes of ${http.name} ${version} at ${describeAddress(http.address)} are containers with root, an image and a network of their own. ${describeRoot(latest)} ${limited}`,
    ...(canFreeze
      ? []
      : ['A suspend terminates the processes of a box, because the engine cannot pause it.']),
    ...(latest.hasSeccomp ? [] : ['The engine does not filter system calls: it has no seccomp profile.']),
  ].join('\n')
}

function describeRoot({ hasUserNamespaces, isRootless }: EngineInfo): string {
  if (isRootless) return 'Root in a box is an ordinary user of the machine.'
  return hasUserNamespaces
    ? 'Root in a box is another user of the machine (userns-remap).'
    : 'Root in a box is root of the machine without most of its rights; userns-remap or a rootless engine isolates it further.'
}
