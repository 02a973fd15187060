// The lineage of a machine: each agent process adds an id that is on disk before it is used.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openLineage } from '../../../agent/machine/lineage.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { silentLog } from '../../support/tunnel.ts'

t.test('each process adds an id to those of earlier processes', async (t) => {
  const dir = createTempDir(t, 'lineage')
  const first = await openLineage(dir, silentLog)
  t.match(first.ids, [/^[0-9a-f]{16}$/])
  await first.recordAccepted()
  const second = await openLineage(dir, silentLog)
  t.same(second.ids.slice(1), first.ids)
  t.same(JSON.parse(readFileSync(join(dir, 'lineage.json'), 'utf8')), {
    ids: second.ids,
    accepted: first.ids[0],
  })
})

t.test('the accepted id stays in the list, however often the agent starts offline', async (t) => {
  const dir = createTempDir(t, 'lineage')
  const accepted = await openLineage(dir, silentLog)
  await accepted.recordAccepted()
  for (let starts = 0; starts < 40; starts++) await openLineage(dir, silentLog)
  const { ids } = await openLineage(dir, silentLog)
  t.equal(ids.length, 32)
  t.equal(new Set(ids).size, 32)
  t.equal(ids.at(-1), accepted.ids[0])
})

t.test('a damaged file starts a new lineage', async (t) => {
  const dir = createTempDir(t, 'lineage')
  for (const content of ['', '{', '{"ids":["x"],"accepted":null}', '[]']) {
    writeFileSync(join(dir, 'lineage.json'), content)
    const { ids } = await openLineage(dir, silentLog)
    t.equal(ids.length, 1, content)
  }
})

t.test('where the file cannot be written, the agent continues with the last id', async (t) => {
  // Linux limits a path to 4095 bytes: lineage.json fits, and the temporary file beside it does not.
  let dir = createTempDir(t, 'lineage')
  while (dir.length < 4080) dir = join(dir, 'd'.repeat(Math.min(200, Math.max(1, 4079 - dir.length))))
  dir = dir.slice(0, 4080)
  mkdirSync(dir, { recursive: true })
  await t.rejects(openLineage(dir, silentLog), { code: 'ENAMETOOLONG' })
  const ids = ['0123456789abcdef']
  writeFileSync(join(dir, 'lineage.json'), JSON.stringify({ ids, accepted: null }))
  t.same((await openLineage(dir, silentLog)).ids, ids)
})
