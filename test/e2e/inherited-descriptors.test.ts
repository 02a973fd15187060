// Boxes do not inherit the descriptors of the shell that started the coordinator.
import { closeSync, openSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'
import { availableLevels } from '../support/isolation-levels.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { createTempDir } from '../support/temp-dir.ts'

/** The processes that have the file open. */
function findReaders(file: string, except: number[]): number[] {
  const hasOpen = (pid: number) => {
    try {
      const dir = `/proc/${pid}/fd`
      return readdirSync(dir).some((fd) => readlinkSync(join(dir, fd)) === file)
    } catch {
      // The process has exited.
      return false
    }
  }
  const pids = readdirSync('/proc').map(Number)
  return pids.filter((pid) => pid > 0 && !except.includes(pid) && hasOpen(pid))
}

for (const { level, skip } of await availableLevels()) {
  t.test(`a command has only its own descriptors (level ${level})`, { skip }, async (t) => {
    const file = join(createTempDir(t, 'inherited'), 'file')
    writeFileSync(file, 'secret')
    const fd = openSync(file, 'r')
    t.teardown(() => closeSync(fd))
    const env = { BOXWOOD_LOCAL_ISOLATION: level }
    const coordinator = await startCoordinatorProcess(t, env, PROJECT_DIR, { other: fd })
    const { box } = await coordinator.sendJson('POST', '/api/v1/boxes', {})
    await coordinator.waitForState(box.id, 'running')
    // The shell opens the directory as the last descriptor.
    const { stdout, stderr } = await coordinator.exec(box.id, 'cd /proc/self/fd && echo *')
    t.equal(stdout, '0 1 2 3\n', stderr)
    t.same(findReaders(file, [process.pid]), [], 'no process has inherited the descriptor')
  })
}
