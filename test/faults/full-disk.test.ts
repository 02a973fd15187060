// A full disk: commands run, and boxes can be suspended and deleted over the API.

import { existsSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startTestCoordinator } from '../support/coordinator.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { mountSmallDisk, SKIP_MOUNT } from '../support/small-disk.ts'
import { waitUntil } from '../support/wait-until.ts'

t.test('runs commands, and suspends and deletes boxes, on a full disk', async (t) => {
  const disk = mountSmallDisk(t, 128)
  if (disk === undefined) return t.pass(SKIP_MOUNT, { skip: SKIP_MOUNT })
  const { api, edge, waitForState, instance } = await startTestCoordinator(t, {
    machines: 'local',
    dataDir: disk.dir,
    env: limitsEnv({ edgeRequestsPerSecond: 10_000 }),
  })
  const createBox = async (name: string) => {
    const { json } = await api('POST', '/boxes', { name })
    await waitForState(json.box.id, 'running')
    return json.box.id as string
  }
  const [fig, plum, recorded] = [await createBox('fig'), await createBox('plum'), await createBox('recorded')]
  disk.fill()
  t.equal(statfsSync(disk.dir).bavail, 0)

  for (let n = 1; n <= 20; n++) {
    const { status, json } = await edge('fig', 'POST', '/exec', { command: `echo ${n}` })
    t.match({ status, json }, { status: 200, json: { exitCode: 0, stdout: `${n}\n` } })
  }
  const commandIds: string[] = []
  for (let n = 1; n <= 20; n++)
    commandIds.push((await edge('recorded', 'POST', '/exec', { command: `echo ${n}` })).json.commandId)
  t.match(await api('POST', `/boxes/${fig}/suspend`), { status: 202 })
  await waitForState(fig, 'suspended')
  for (const id of [fig, plum]) {
    t.match(await api('DELETE', `/boxes/${id}`), { status: 202 })
    await waitForState(id, 'terminated')
    t.notOk(existsSync(join(disk.dir, 'boxes', id)))
  }
  t.ok(existsSync(join(disk.dir, 'fill')), 'the disk was full all the time')

  disk.free()
  // Otherwise a timer does this.
  instance.context.diskReserve.restore()
  t.notOk(instance.context.diskReserve.isReleased)
  // Before the machine stops, the coordinator reads the reports without the delay before a retry.
  t.match(await api('POST', `/boxes/${recorded}/suspend`), { status: 202 })
  await waitForState(recorded, 'suspended')
  for (const [index, id] of commandIds.entries()) {
    const path = `/boxes/${recorded}/commands/${id}`
    t.match((await api('GET', path)).json.command, {
      ...{ status: 'exited', exitCode: 0, stdoutTruncated: false, outputKept: true },
    })
    t.match(await api('GET', `${path}/output`), { json: { data: `${index + 1}\n`, done: true } })
  }
})

t.test('suspends a box that fills the disk, and its files can be deleted after a wake', async (t) => {
  // The reserve of the database is less than 5 % of this disk.
  const disk = mountSmallDisk(t, 400)
  if (disk === undefined) return t.pass(SKIP_MOUNT, { skip: SKIP_MOUNT })
  const { api, edge, waitForState } = await startTestCoordinator(t, { machines: 'local', dataDir: disk.dir })
  const { boxes } = (await api('GET', '/boxes')).json
  const { id, hostname } = await waitForState(boxes[0].id, 'running')
  await edge(hostname, 'POST', '/exec', { command: 'cat /dev/zero >file', detached: true })
  await waitForState(id, 'suspended')
  t.match((await api('GET', `/boxes/${id}`)).json, {
    box: { desiredState: 'suspended' },
    events: [{ reason: /^the disk of the machine has only 0\.0 GB free, and this box grew by 0\.\d GB/ }],
  })
  t.match(await edge(hostname, 'POST', '/exec', { command: 'rm file; ls' }), {
    status: 200,
    json: { exitCode: 0, stdout: '' },
  })
  t.ok(statfsSync(disk.dir).bavail > 0)
})

t.test('suspends a box that creates files until the disk has space for no more', async (t) => {
  const disk = mountSmallDisk(t, 1000, 30_000)
  if (disk === undefined) return t.pass(SKIP_MOUNT, { skip: SKIP_MOUNT })
  const { api, edge, waitForState } = await startTestCoordinator(t, { machines: 'local', dataDir: disk.dir })
  const createBox = async (name: string) => {
    const { json } = await api('POST', '/boxes', { name })
    await waitForState(json.box.id, 'running')
    return json.box.id as string
  }
  const many = await createBox('many')
  await createBox('other')
  const exec = (command: string) => edge('other', 'POST', '/exec', { command })
  t.match(await exec('echo before'), { json: { stdout: 'before\n' } })
  const script = 'mkdir files && cd files && n=0 && while : >"$n"; do n=$((n + 1)); done; sleep 600'
  await edge('many', 'POST', '/exec', { command: script, detached: true })
  await waitForState(many, 'suspended')
  t.match((await api('GET', `/boxes/${many}`)).json, {
    box: { desiredState: 'suspended' },
    events: [
      { reason: /^the disk of the machine has space for only \d+ more files, and this box created \d+/ },
    ],
  })
  t.match(await exec('echo full'), { json: { stdout: 'full\n' } }, 'a short command needs no inode')
  await waitUntil('the reserved inodes are released', () => statfsSync(disk.dir).ffree > 100)
  t.match(await exec('echo >file; ls'), { json: { stdout: 'file\n' } })
  t.match(await api('DELETE', `/boxes/${many}`), { status: 202 })
  await waitForState(many, 'terminated')
})
