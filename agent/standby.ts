// Waits on a machine that has no box yet, until the coordinator has written the settings of the box.
import { once } from 'node:events'
import { watch } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { STANDBY_FILES } from '../shared/standby-files.ts'
import { readStateFile, writeStateFile } from './state-file.ts'

const MAX_BYTES = 64 * 1024

const variables = z.record(z.string(), z.string())

/**
 * Without BOXWOOD_STANDBY: no-op. Else waits for the variables of the agent in `<BOXWOOD_STATE>/variables.json`, and puts them into
 * `env`. They are there at once when the agent starts again.
 * @throws Error when the file is not valid
 */
export async function waitForBox(env: Record<string, string | undefined>): Promise<void> {
  const { BOXWOOD_STANDBY: isStandby, BOXWOOD_STATE: stateDir } = env
  delete env.BOXWOOD_STANDBY
  if (isStandby !== '1' || stateDir === undefined) return
  Object.assign(env, readVariables(stateDir) ?? (await waitForVariables(stateDir)))
}

async function waitForVariables(stateDir: string): Promise<Record<string, string>> {
  const watcher = watch(stateDir)
  try {
    writeStateFile(join(stateDir, STANDBY_FILES.waiting), '')
    for (;;) {
      // Before the file is read, so that no change in between is missed.
      const changed = once(watcher, 'change')
      const found = readVariables(stateDir)
      if (found !== null) return found
      await changed
    }
  } finally {
    watcher.close()
  }
}

function readVariables(stateDir: string): Record<string, string> | null {
  const text = readStateFile(join(stateDir, STANDBY_FILES.variables), MAX_BYTES)
  return text === null ? null : variables.parse(JSON.parse(text))
}
