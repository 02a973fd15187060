// A folder comes down as a tar that the tar command unpacks to the same folder, or the transfer breaks.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmod,
  link,
  lstat,
  mkdir,
  readFile,
  readlink,
  rm,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { connect as connectHttp2, constants } from 'node:http2'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import t from 'tap'
import { extract } from 'tar'
import { archive } from '../../../agent/files/archive.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { errorOf, namesIn, query, serveFiles } from './support.ts'

const { home, url } = await serveFiles(t)
const folder = join(home, 'Ordner ü')
const download = (path: string) => fetch(`${url}/download${query(path)}`)
const modeOf = async (path: string) => ((await lstat(path)).mode & 0o7777).toString(8)
const long = 'long-'.repeat(40)
const notUtf8 = Buffer.from([0xe9, 0x74, 0xe9])
const under = (at: string) => Buffer.concat([Buffer.from(`${at}/`), notUtf8])

await mkdir(join(folder, 'empty'), { recursive: true, mode: 0o700 })
await mkdir(join(folder, `${long}/${long}`), { recursive: true })
await writeFile(join(folder, 'run.sh'), '#!/bin/sh\n', { mode: 0o755 })
await writeFile(join(folder, 'grüße 🌳.txt'), 'grüße')
await writeFile(join(folder, 'nothing'), '')
await writeFile(join(folder, 'large'), Buffer.alloc(3_000_001, 'l'))
await writeFile(join(folder, `${long}/${long}/${long}`), 'deep')
await writeFile(join(folder, 'private'), 'x', { mode: 0o600 })
await writeFile(join(folder, '.boxwood-write-now'), 'a write that is going on')
await writeFile(under(folder), 'latin')
await symlink('run.sh', join(folder, 'link'))
await symlink(`nowhere/${long}`, join(folder, 'dangling'))
await link(join(folder, 'large'), join(folder, 'large-too'))
execFileSync('mkfifo', [join(folder, 'fifo')])
const socket = createServer().listen(join(folder, 'socket'))
await once(socket, 'listening')
t.teardown(() => socket.close())

const unpackers = {
  'the tar command': async (body: Readable, into: string) => {
    const tar = spawn('tar', ['-x', '-p', '-C', into], { stdio: ['pipe', 'inherit', 'inherit'] })
    const ended = once(tar, 'close')
    await pipeline(body, tar.stdin)
    t.same(await ended, [0, null])
  },
  'the tar package': async (body: Readable, into: string) => {
    await pipeline(body, extract({ cwd: into, strict: true, preserveOwner: false }))
  },
}

for (const [who, unpack] of Object.entries(unpackers)) {
  t.test(`${who} unpacks it`, async (t) => {
    const into = join(home, who)
    await mkdir(into)
    const response = await download('Ordner ü')
    t.match(Object.fromEntries(response.headers), {
      'content-type': 'application/x-tar',
      'x-service-content': 'directory',
    })
    t.equal(decodeURIComponent(response.headers.get('x-service-path') ?? ''), folder)
    if (response.body === null) return t.fail('no body')
    await unpack(Readable.fromWeb(response.body), into)

    t.same(await namesIn(into), ['Ordner ü'], 'everything is under the folder’s own name')
    const at = (name: string) => join(into, 'Ordner ü', name)
    const skipped = ['.boxwood-write-now', 'fifo', 'socket']
    const expected = (await namesIn(folder)).filter(
      (name) => !skipped.includes(name) && !name.includes('\ufffd'),
    )
    t.same(
      (await namesIn(at('.'))).filter((name) => !name.includes('\ufffd')),
      expected,
    )
    t.equal(await readFile(at('grüße 🌳.txt'), 'utf8'), 'grüße')
    t.equal(await readFile(at(`${long}/${long}/${long}`), 'utf8'), 'deep')
    t.equal(await modeOf(at('run.sh')), '755')
    t.equal(await modeOf(at('private')), '600')
    t.equal(await modeOf(at('empty')), '700')
    t.same(await namesIn(at('empty')), [])
    t.equal(await readlink(at('link')), 'run.sh')
    t.equal(await readlink(at('dangling')), `nowhere/${long}`)
    t.ok((await readFile(at('large'))).equals(await readFile(join(folder, 'large'))))
    t.equal(
      (await lstat(at('large-too'))).ino,
      (await lstat(at('large'))).ino,
      'still one file with two names',
    )
    t.equal((await lstat(at('nothing'))).size, 0)
    t.equal(
      (await lstat(at('nothing'))).mtime.getTime(),
      Math.floor((await lstat(join(folder, 'nothing'))).mtimeMs / 1000) * 1000,
    )
    if (who === 'the tar command')
      t.equal(await readFile(under(at('.')), 'utf8'), 'latin', 'a name that is not UTF-8')
  })
}

t.test('more than 1 GiB is refused before anything is sent', async (t) => {
  await mkdir(join(home, 'huge/sub'), { recursive: true })
  for (const name of ['one', 'sub/two']) {
    await writeFile(join(home, 'huge', name), '')
    await truncate(join(home, 'huge', name), 600 * 1024 ** 2)
  }
  t.match(await errorOf(await download('huge')), { status: 413, code: 'payload_too_large' })
})

t.test('a folder that changes while it is sent', async (t) => {
  const path = join(home, 'changing')
  const begin = async () => {
    await rm(path, { recursive: true, force: true })
    await mkdir(path)
    await writeFile(join(path, 'file'), Buffer.alloc(4_000_000, 'x'))
    const chunks = archive(path, LIMITS.transferBytes)
    const head = [await chunks.next(), await chunks.next()].map(({ value }) => value as Buffer)
    return { head, rest: chunks }
  }
  const listed = (tar: Buffer) => execFileSync('tar', ['-tv'], { input: tar }).toString()

  const grown = await begin()
  await writeFile(join(path, 'file'), 'more', { flag: 'a' })
  t.match(listed(Buffer.concat([...grown.head, await buffer(grown.rest)])), / 4000000 /, 'cut at its size')

  const shrunk = await begin()
  await truncate(join(path, 'file'), 10)
  await t.rejects(buffer(shrunk.rest), /became shorter/)

  await rm(path, { recursive: true })
  await mkdir(path)
  await writeFile(join(path, 'gone'), 'x')
  const chunks = archive(path, LIMITS.transferBytes)
  const first = (await chunks.next()).value as Buffer
  await rm(join(path, 'gone'))
  t.match(
    listed(Buffer.concat([first, await buffer(chunks)])),
    /changing\/\n$/,
    'what was removed is left out',
  )
})

for (const http2 of [false, true]) {
  t.test(`a tar that cannot be finished does not end, over HTTP/${http2 ? 2 : 1}`, async (t) => {
    const served = await serveFiles(t, { http2 })
    const path = join(served.home, 'shrinking')
    await mkdir(path)
    await writeFile(join(path, 'file'), '')
    await truncate(join(path, 'file'), 256 * 1024 * 1024)
    const session = http2 ? connectHttp2(served.url) : null
    session?.on('error', () => undefined)
    const body: Readable =
      session?.request({ ':path': '/download?path=shrinking' }) ??
      Readable.fromWeb((await fetch(`${served.url}/download?path=shrinking`)).body ?? (t.fail() as never))
    // Past the headers: from here on the file is promised.
    for (let seen = 0; seen < 4096; seen += body.read()?.length ?? 0) await once(body, 'readable')
    await truncate(join(path, 'file'), 0)
    await t.rejects(async () => {
      for await (const _ of body);
      if ('rstCode' in body && body.rstCode !== constants.NGHTTP2_NO_ERROR) throw new Error('reset')
    })
    session?.destroy()
  })
}

t.test('of the tar’s own names nothing leads outside', async (t) => {
  const tar = await buffer(archive(folder, LIMITS.transferBytes))
  const names = execFileSync('tar', ['-t', '--quoting-style=literal'], { input: tar })
    .toString()
    .trim()
    .split('\n')
  t.ok(names.every((name) => name.startsWith('Ordner ü/')))
  await chmod(folder, 0o755)
})
