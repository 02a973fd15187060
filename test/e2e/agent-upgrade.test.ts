// An upgrade of the coordinator while boxes run: their agents restart with the new version, also when the project directory
// has been moved. Detached commands and their streams continue.
import { appendFileSync, cpSync, mkdirSync, renameSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'
import { findAgentPid } from '../support/find-agent-process.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { waitUntil } from '../support/wait-until.ts'

/** A copy of the project's programs, with its own packages directory that links to the installed packages. */
function copyProject(t: Test): string {
  const dir = join(createTempDir(t, 'project'), 'first')
  mkdirSync(dir)
  for (const name of ['agent', 'coordinator', 'shared', 'package.json'])
    cpSync(join(PROJECT_DIR, name), join(dir, name), { recursive: true })
  symlinkSync(join(PROJECT_DIR, 'node_modules'), join(dir, 'node_modules'))
  return dir
}

for (const isolation of ['auto', 'process']) {
  t.test(`restarts the agents of running boxes with the new version (isolation ${isolation})`, async (t) => {
    const projectDir = copyProject(t)
    const coordinator = await startCoordinatorProcess(t, { BOXWOOD_LOCAL_ISOLATION: isolation }, projectDir)
    const { id, hostname } = await coordinator.waitForFirstBox()
    const { processId } = await coordinator.exec(
      hostname,
      'echo first; while [ ! -e go ]; do sleep 0.1; done; echo second',
      {
        detached: true,
      },
    )
    const readVersion = async () =>
      (await coordinator.sendJson('GET', `/api/v1/boxes/${id}`)).vitals?.agent_version
    const oldVersion = await waitUntil('the agent has sent its version', readVersion)
    const oldPid = findAgentPid(id)

    await coordinator.kill('SIGTERM')
    const movedDir = join(projectDir, '../moved')
    renameSync(projectDir, movedDir)
    appendFileSync(join(movedDir, 'agent/init/init.sh'), '# The next version.\n')
    await coordinator.start(movedDir)
    const newVersion = await waitUntil(
      'the agent has another version',
      async () => {
        const version = await readVersion()
        return version !== oldVersion && version
      },
      15_000,
    )
    t.match(newVersion, /^\d+\.\d+\.\d+\+[0-9a-f]{16}$/)
    t.not(findAgentPid(id), oldPid)

    const { processes } = await coordinator.sendJson('GET', `/v1/box/${hostname}/exec`)
    t.match(processes, [{ processId, running: true, lost: false }])
    await coordinator.exec(hostname, 'touch go')
    const stream = await coordinator.send('GET', `/v1/box/${hostname}/exec/${processId}/stream`)
    const events = Buffer.concat(await stream.toArray()).toString()
    t.match(events, /first\\n.*second\\n.*event: exit/s, 'the stream has the output from before and after')
    const { pausesSurvived } = await coordinator.sendJson('GET', `/api/v1/boxes/${id}`)
    t.equal(pausesSurvived, 0, 'the box was not restarted')
  })
}
