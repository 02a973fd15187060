// Moves the memory of a frozen box to swap, in the background: its processes do not use it until they are thawed.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runCommand } from './run-command.ts'

export type ReclaimerOptions = {
  log: { debug(fields: object, message: string): void }
  /** Replaces the check for free swap. Only tests set it. */
  hasSwap?: () => boolean
}

export type Reclaimer = ReturnType<typeof createReclaimer>

const SWAP_LIMIT_FILE = 'memory.swap.max'

export function createReclaimer({ log, hasSwap = hasFreeSwap }: ReclaimerOptions) {
  const runs = new Map<string, { abort: AbortController; done: Promise<void> }>()

  function stop(boxId: string): void {
    runs.get(boxId)?.abort.abort()
    runs.delete(boxId)
  }

  return {
    /** @param cgroupDirs the cgroups of a frozen box */
    start(boxId: string, cgroupDirs: readonly string[]): void {
      stop(boxId)
      const write = hasSwap() ? cgroupDirs.map(findWrite).find((found) => found !== undefined) : undefined
      if (write === undefined) return
      const abort = new AbortController()
      const { value, file } = write
      // The write returns when the kernel has finished, which can take seconds.
      const command = ['/bin/sh', '-c', 'echo "$1" >"$2"', 'sh', value, file]
      const done = (async () => {
        liftSwapLimit(cgroupDirs)
        await runCommand(command, { signal: abort.signal })
      })().catch((err: unknown) => {
        if (!abort.signal.aborted) log.debug({ err, boxId }, 'some memory of a frozen box was not reclaimed')
      })
      runs.set(boxId, { abort, done })
    },
    /** @param cgroupDirs the cgroups of a box that is thawed next */
    end(boxId: string, cgroupDirs: readonly string[]): void {
      stop(boxId)
      restoreSwapLimit(cgroupDirs)
    },
    async close(): Promise<void> {
      const unfinished = [...runs]
      for (const [boxId] of unfinished) stop(boxId)
      await Promise.all(unfinished.map(([, { done }]) => done))
    },
  }
}

/** Version 2 and version 1 of cgroups. */
function findWrite(dir: string): { file: string; value: string } | undefined {
  const reclaim = join(dir, 'memory.reclaim')
  if (existsSync(reclaim))
    return { file: reclaim, value: readFileSync(join(dir, 'memory.current'), 'utf8').trim() }
  const forceEmpty = join(dir, 'memory.force_empty')
  return existsSync(forceEmpty) ? { file: forceEmpty, value: '0' } : undefined
}

const liftSwapLimit = (dirs: readonly string[]) => writeSwapLimit(dirs, 'max')
/** The limit of a running box: see cgroups.ts. Memory that is in swap stays there until it is used. */
const restoreSwapLimit = (dirs: readonly string[]) => writeSwapLimit(dirs, '0')

function writeSwapLimit(dirs: readonly string[], value: string): void {
  for (const dir of dirs) {
    const file = join(dir, SWAP_LIMIT_FILE)
    if (existsSync(file)) writeFileSync(file, value)
  }
}

const hasFreeSwap = (): boolean =>
  Number(/^SwapFree:\s+(\d+) kB/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1] ?? 0) > 0
