// An upgrade of the coordinator while boxes run: their agents restart with the new version, also when the project directory
// has been moved. Detached commands and their streams continue.

import { appendFileSync, existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { VERSION } from '../../shared/version.ts'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'
import { findAgentPid } from '../support/find-agent-process.ts'
import { copyProject } from '../support/joined-machine.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../support/wait-until.ts'

const root = createTempDir(t, 'project')
const projectDir = join(root, 'first')
const movedDir = join(root, 'moved')

renameSync(copyProject(t, {}), projectDir)

for (const isolation of ['auto', 'process']) {
  t.test(`restarts the agents of running boxes with the new version (isolation ${isolation})`, async (t) => {
    // The same directories again: Node has cached the compiled sources.
    if (existsSync(movedDir)) renameSync(movedDir, projectDir)
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
    renameSync(projectDir, movedDir)
    appendFileSync(join(movedDir, 'agent/init/init.sh'), '# The next version.\n')
    await coordinator.start(movedDir)
    const newVersion = await waitUntil(
      'the agent has another version',
      async () => {
        const version = await readVersion()
        return version !== oldVersion && version
      },
      // The coordinator creates a new bundle before it restarts the agent.
      LONG_DEADLINE_MS,
    )
    t.match(newVersion, new RegExp(`^${VERSION}\\+[0-9a-f]{16}$`))
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
