// The files in the state directory with which the agent and its supervisor (agent/init/agent-loop.sh) decide whether a
// build works.
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../durable-file.ts'

export type BuildState = {
  /** Ends the trial of this build: the coordinator uses its connection. */
  recordConnected(): Promise<void>
  /** `<build>@<time and pid>` of the last build that did not connect; null: none. */
  readFailure(): Promise<string | null>
  /** Removes the failure, so that the build is tried again. */
  clearFailure(): Promise<void>
}

/** @param buildId null: the agent runs from its sources */
export function createBuildState(stateDir: string, buildId: string | null): BuildState {
  const connectedFile = join(stateDir, 'connected-build')
  const failedFile = join(stateDir, 'failed-build')
  return {
    async recordConnected() {
      if (buildId === null) return
      await replaceFile(connectedFile, `${buildId} ${process.pid}\n`)
    },
    async readFailure() {
      const text = await readFile(failedFile, 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return ''
        throw error
      })
      return /^([\x21-\x7e]{1,64})\n$/.exec(text)?.[1] ?? null
    },
    clearFailure: () => rm(failedFile, { force: true }),
  }
}
