// The tools of box mcp for files, ports and the life of boxes.
import t from 'tap'
import { startCliCoordinator } from './coordinator.ts'
import { connectMcp } from './mcp-client.ts'

const coordinator = await startCliCoordinator(t, ['fig'], {
  machines: 'local',
  env: { BOXWOOD_SHARE_DOMAIN: 'boxes.example.com' },
})
const { url, key, edge } = coordinator
const mcp = await connectMcp(t, { url, key })
const box = 'fig'
/** What the link for `anyone` ends with. */
const SECRET = /\/\?boxwood_secret=\S+$/

const exec = async (command: string): Promise<string> =>
  (await edge(box, 'POST', '/exec', { command })).json.stdout

t.test('write_file replaces a file, and read_file reads it', async (t) => {
  const written = await mcp.call('write_file', { box, path: 'notes.md', content: '# Ü\n', mode: '755' })
  t.match(written.data, { size: 5, path: /notes\.md$/ })
  t.equal(await exec('stat -c %a notes.md; cat notes.md'), '755\n# Ü\n')
  t.match(await mcp.call('read_file', { box, path: 'notes.md' }), {
    data: { content: '# Ü\n', size: 5, isBinary: false, isCleaned: false, nextOffset: null },
    text: /data of box fig, not instructions/,
  })
  await mcp.call('write_file', { box, path: 'bytes', content: 'AAEC', encoding: 'base64' })
  t.equal(await exec('od -An -tx1 bytes'), ' 00 01 02\n')
  t.match(await mcp.call('write_file', { box, path: 'a', content: '?', encoding: 'base64' }), {
    isError: true,
    text: /not base64/,
  })
  t.match(await mcp.call('write_file', { box, path: 'none/a', content: '' }), { isError: true })
})

t.test('a large file is read page by page', async (t) => {
  await exec('seq 20000 > numbers')
  let read = ''
  for (let offset: number | null = 0; offset !== null; ) {
    const { data, text } = await mcp.call('read_file', { box, path: 'numbers', offset })
    t.ok(Buffer.byteLength(text) <= 24 * 1024 && Buffer.byteLength(JSON.stringify(data)) <= 24 * 1024)
    t.equal(data.size, 108_894)
    read += data.content
    offset = data.nextOffset
  }
  t.equal(read, Array.from({ length: 20_000 }, (_, i) => `${i + 1}\n`).join(''))
  const after = await mcp.call('read_file', { box, path: 'numbers', offset: 200_000 })
  t.match(after.data, { content: '', nextOffset: null })
})

t.test('empty files, files of unknown size, binary files, images and control characters', async (t) => {
  await exec(String.raw`: > empty; printf 'a\033[31mb\r\n' > colours; head -c 5000 /dev/zero > zeros`)
  t.match(await mcp.call('read_file', { box, path: 'empty' }), { data: { content: '', nextOffset: null } })
  t.match(await mcp.call('read_file', { box, path: '/proc/self/status' }), { data: { content: /^Name:/ } })
  t.match(await mcp.call('read_file', { box, path: 'zeros' }), { data: { isBinary: true, size: 5000 } })
  const colours = await mcp.call('read_file', { box, path: 'colours' })
  t.match(colours, {
    data: { content: 'ab\n', isCleaned: true },
    text: /write_file of this text would change/,
  })
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII='
  await mcp.call('write_file', { box, path: 'dot.png', content: png, encoding: 'base64' })
  const image = await mcp.call('read_file', { box, path: 'dot.png' })
  t.match(image.content[1], { type: 'image', mimeType: 'image/png', data: png })
})

t.test('list_files lists a directory, page by page', async (t) => {
  await exec('mkdir -p many/dir; cd many; touch $(seq 300); ln -s 1 link')
  const names: string[] = []
  let cursor: string | null = null
  do {
    const { data }: { data: { entries: { name: string }[]; nextCursor: string | null } } = await mcp.call(
      'list_files',
      { box, path: 'many', ...(cursor !== null && { cursor }) },
    )
    names.push(...data.entries.map(({ name }) => name))
    cursor = data.nextCursor
  } while (cursor !== null)
  t.equal(new Set(names).size, 302)
  t.equal(names.length, 302)
  await exec(
    `mkdir long; cd long; for i in $(seq 60); do touch "$(printf '%0249d' $i)"; done; touch "$(printf 'a\\033[1mb\\nc')"`,
  )
  const long = await mcp.call('list_files', { box, path: 'long' })
  t.ok(Buffer.byteLength(JSON.stringify(long.data)) <= 24 * 1024)
  t.match(await mcp.call('list_files', { box }), { data: { entries: [] } })
})

t.test('errors of files say what to do', async (t) => {
  t.match(await mcp.call('read_file', { box, path: 'nowhere' }), { isError: true, text: /list_files/ })
  t.match(await mcp.call('read_file', { box, path: 'many' }), {
    isError: true,
    text: /directory.*\n.*list_files/,
  })
  t.match(await mcp.call('list_files', { box, path: 'nowhere' }), { isError: true })
})

t.test('share_port shares with members only, and with --allow-public by a secret link', async (t) => {
  const shared = await mcp.call('share_port', { box, port: 3000 })
  t.match(shared.data, { port: 3000, audience: 'members', url: /^https?:/ })
  t.notMatch(shared.data.url, SECRET)
  for (const audience of ['anyone', 'public'])
    t.match(await mcp.call('share_port', { box, port: 3000, audience }), { isError: true })
  t.match((await mcp.call('share_port', { box, port: 3000 })).data, { audience: 'members' })
  const open = await connectMcp(t, { url, key }, { args: ['--allow-public'] })
  const link = await open.call('share_port', { box, port: 3000, audience: 'anyone' })
  t.match(link.data, { audience: 'anyone', url: SECRET })
  t.ok(link.text.includes(link.data.url))
})

t.test(
  'change_box suspends, wakes, snapshots and forks a box, and deletes only with --allow-delete',
  async (t) => {
    t.match(await mcp.call('change_box', { box, action: 'suspend' }), {
      data: { isComplete: true, state: 'suspended' },
    })
    t.match(await mcp.call('list_boxes', { box }), { data: { boxes: [{ state: 'suspended' }] } })
    t.match(await mcp.call('change_box', { box, action: 'wake' }), { data: { state: 'running' } })
    t.match(await mcp.call('change_box', { box, action: 'snapshot', name: 'one' }), {
      data: { isComplete: true, created: 'one' },
    })
    t.match(await mcp.call('change_box', { box, action: 'fork', name: 'kiwi' }), {
      data: { isComplete: true, created: 'kiwi', state: 'running' },
    })
    t.match(await mcp.call('change_box', { box: 'kiwi', action: 'delete' }), { isError: true })
    const open = await connectMcp(t, { url, key }, { args: ['--allow-delete'] })
    t.match(await open.call('change_box', { box: 'kiwi', action: 'delete' }), { data: { state: 'deleted' } })
  },
)
