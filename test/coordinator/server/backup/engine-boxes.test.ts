// A backup does not have the files of boxes and snapshots that an engine stores, and says so.
import { join } from 'node:path'
import t from 'tap'
import { writeBackup } from '../../../../coordinator/server/backup/write-backup.ts'
import { startTestCoordinator } from '../../../support/coordinator.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { configOf, NEVER } from './support.ts'

t.test('the files of an engine are not in a backup', async (t) => {
  const env = { BOXWOOD_DATABASE_URL: '' }
  const { api, waitForState, dataDir, infra } = await startTestCoordinator(t, { env })
  // The box of the first start.
  const [{ id }] = (await api('GET', '/boxes')).json.boxes
  await waitForState(id, 'running')
  await api('POST', '/snapshots', { boxId: id, name: 'taken' })
  await waitUntil('the snapshot is available', async () => {
    const { json } = await api('GET', '/snapshots')
    return json.snapshots[0].status === 'available'
  })
  const captures = infra.countCalls('capture')
  const file = join(createTempDir(t, 'backup'), 'boxwood.tar')
  const options = { includeBoxes: true, signal: NEVER }
  const { description } = await writeBackup(configOf(dataDir, env), file, options)
  t.match(description, { boxes: { included: 0, omitted: 1 }, archives: { omitted: 1 } })
  t.equal(infra.countCalls('capture'), captures, 'the box was not paused')
})
