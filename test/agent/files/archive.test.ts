// A directory download is a tar archive that unpacks to the same directory, or the transfer fails.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Stats } from 'node:fs'
import {
  chmod,
  type FileHandle,
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
import { createServer } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import t from 'tap'
import { extract } from 'tar'
import { archiveDirectory, checkArchivable } from '../../../agent/files/archive.ts'
import { checkEnd, type ReadLimits } from '../../../agent/files/read.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { listNames, NO_LIMITS, query, readError, serveFiles } from './support.ts'

const { home, url } = await serveFiles(t)
const dir = join(home, 'Ordner ü')
const download = (path: string) => fetch(`${url}/download${query(path)}`)
const modeOf = async (path: string) => ((await lstat(path)).mode & 0o7777).toString(8)
const long = 'long-'.repeat(40)
const notUtf8 = Buffer.from([0xe9, 0x74, 0xe9])
const notUtf8In = (parent: string) => Buffer.concat([Buffer.from(`${parent}/`), notUtf8])

await mkdir(join(dir, 'empty'), { recursive: true, mode: 0o700 })
await mkdir(join(dir, `${long}/${long}`), { recursive: true })
await writeFile(join(dir, 'run.sh'), '#!/bin/sh\n', { mode: 0o755 })
await writeFile(join(dir, 'grüße 🌳.txt'), 'grüße')
await writeFile(join(dir, 'nothing'), '')
await writeFile(join(dir, 'large'), Buffer.alloc(3_000_001, 'l'))
await writeFile(join(dir, `${long}/${long}/${long}`), 'deep')
await writeFile(join(dir, 'private'), 'x', { mode: 0o600 })
await writeFile(join(dir, '.boxwood-write-now'), 'a write in progress')
await writeFile(notUtf8In(dir), 'latin')
await symlink('run.sh', join(dir, 'link'))
await symlink(`nonexistent/${long}`, join(dir, 'dangling'))
await link(join(dir, 'large'), join(dir, 'large-hardlink'))
execFileSync('mkfifo', [join(dir, 'fifo')])
const socket = createServer().listen(join(dir, 'socket'))
await once(socket, 'listening')
t.teardown(() => socket.close())

const unpackers = {
  'the tar command': async (body: Readable, targetDir: string) => {
    const tar = spawn('tar', ['-x', '-p', '-C', targetDir], { stdio: ['pipe', 'inherit', 'inherit'] })
    const closed = once(tar, 'close')
    await pipeline(body, tar.stdin)
    t.same(await closed, [0, null])
  },
  'the tar package': async (body: Readable, targetDir: string) => {
    await pipeline(body, extract({ cwd: targetDir, strict: true, preserveOwner: false }))
  },
}

for (const [unpacker, unpack] of Object.entries(unpackers)) {
  t.test(`${unpacker} unpacks a downloaded directory`, async (t) => {
    const targetDir = join(home, unpacker)
    await mkdir(targetDir)
    const response = await download('Ordner ü')
    t.match(Object.fromEntries(response.headers), {
      'content-type': 'application/x-tar',
      'x-service-content': 'directory',
    })
    t.equal(decodeURIComponent(response.headers.get('x-service-path') ?? ''), dir)
    t.equal(response.headers.get('x-service-skipped'), '2', 'the FIFO and the socket')
    if (response.body === null) return t.fail('no body')
    await unpack(Readable.fromWeb(response.body), targetDir)

    const files = execFileSync('find', [join(targetDir, 'Ordner ü'), '-type', 'f', '-printf', '%s\\n'])
      .toString()
      .trim()
      .split('\n')
    t.equal(response.headers.get('x-service-files'), String(files.length))
    t.equal(
      response.headers.get('x-service-bytes'),
      String(files.reduce((sum, size) => sum + Number(size), 0)),
    )
    t.same(await listNames(targetDir), ['Ordner ü'], 'all entries are below the directory’s own name')
    const unpackedPath = (name: string) => join(targetDir, 'Ordner ü', name)
    const skipped = ['.boxwood-write-now', 'fifo', 'socket']
    const expected = (await listNames(dir)).filter(
      (name) => !skipped.includes(name) && !name.includes('\ufffd'),
    )
    t.same(
      (await listNames(unpackedPath('.'))).filter((name) => !name.includes('\ufffd')),
      expected,
    )
    t.equal(await readFile(unpackedPath('grüße 🌳.txt'), 'utf8'), 'grüße')
    t.equal(await readFile(unpackedPath(`${long}/${long}/${long}`), 'utf8'), 'deep')
    t.equal(await modeOf(unpackedPath('run.sh')), '755')
    t.equal(await modeOf(unpackedPath('private')), '600')
    t.equal(await modeOf(unpackedPath('empty')), '700')
    t.same(await listNames(unpackedPath('empty')), [])
    t.equal(await readlink(unpackedPath('link')), 'run.sh')
    t.equal(await readlink(unpackedPath('dangling')), `nonexistent/${long}`)
    t.ok((await readFile(unpackedPath('large'))).equals(await readFile(join(dir, 'large'))))
    t.equal(
      (await lstat(unpackedPath('large-hardlink'))).ino,
      (await lstat(unpackedPath('large'))).ino,
      'a hard link stays a hard link',
    )
    t.equal((await lstat(unpackedPath('nothing'))).size, 0)
    t.equal(
      (await lstat(unpackedPath('nothing'))).mtime.getTime(),
      Math.floor((await lstat(join(dir, 'nothing'))).mtimeMs / 1000) * 1000,
    )
    if (unpacker === 'the tar command')
      t.equal(await readFile(notUtf8In(unpackedPath('.')), 'utf8'), 'latin', 'a name that is not UTF-8')
  })
}

t.test('rejects a directory of more than 1 GiB before sending anything', async (t) => {
  await mkdir(join(home, 'huge/sub'), { recursive: true })
  for (const name of ['one', 'sub/two']) {
    await writeFile(join(home, 'huge', name), '')
    await truncate(join(home, 'huge', name), 600 * 1024 ** 2)
  }
  t.match(await readError(await download('huge')), { status: 413, code: 'payload_too_large' })
})

t.test('handles files that grow, shrink or disappear during the download', async (t) => {
  const path = join(home, 'changing')
  const startArchive = async () => {
    await rm(path, { recursive: true, force: true })
    await mkdir(path)
    await writeFile(join(path, 'file'), Buffer.alloc(4_000_000, 'x'))
    const chunks = archiveDirectory(path, LIMITS.transferBytes, NO_LIMITS)
    const head = [await chunks.next(), await chunks.next()].map(({ value }) => value as Buffer)
    return { head, rest: chunks }
  }
  const listTar = (tar: Buffer) => execFileSync('tar', ['-tv'], { input: tar }).toString()

  const grown = await startArchive()
  await writeFile(join(path, 'file'), 'more', { flag: 'a' })
  t.match(
    listTar(Buffer.concat([...grown.head, await buffer(grown.rest)])),
    / 4000000 /,
    'a file that grows is truncated to its initial size',
  )

  const shrunk = await startArchive()
  await truncate(join(path, 'file'), 10)
  await t.rejects(buffer(shrunk.rest), /became shorter/)

  await rm(path, { recursive: true })
  await mkdir(path)
  await writeFile(join(path, 'deleted'), 'x')
  const chunks = archiveDirectory(path, LIMITS.transferBytes, NO_LIMITS)
  const first = (await chunks.next()).value as Buffer
  await rm(join(path, 'deleted'))
  t.match(
    listTar(Buffer.concat([first, await buffer(chunks)])),
    /changing\/\n$/,
    'a deleted file is left out',
  )
})

t.test('files whose size is wrong', async (t) => {
  const read = async (path: string, limits: ReadLimits) => {
    const tar = await buffer(archiveDirectory(path, LIMITS.transferBytes, limits))
    return execFileSync('tar', ['-x', '-O', '-f', '-'], { input: tar })
  }
  const procDir = '/proc/sys/kernel/random'
  const bootId = await readFile(`${procDir}/boot_id`)
  t.equal((await lstat(`${procDir}/boot_id`)).size, 0)
  t.ok((await read(procDir, NO_LIMITS)).includes(bootId), 'a file of size 0 is read to its end')
  const limits = { ...NO_LIMITS, credentials: { includes: () => false } }
  t.equal((await read(procDir, limits)).length, 0, 'for a client that may not run commands it is omitted')
  const { files, skipped } = await checkArchivable(procDir, LIMITS.transferBytes, limits)
  t.match({ files, skipped }, { files: 0, skipped: Number })
  t.ok(skipped > 0)

  const handle = (size: number) =>
    ({ read: async () => ({ bytesRead: 1 }), stat: async () => ({ size }) }) as unknown as FileHandle
  const stat = { size: 10, blocks: 0 } as Stats
  await t.rejects(checkEnd({ path: '/a', handle: handle(10), stat }), {
    code: 'exec_failed',
    message: /longer/,
  })
  await t.resolves(checkEnd({ path: '/a', handle: handle(11), stat }), 'a file that grows')
})

t.test('an archive that fails midway aborts the response', async (t) => {
  const server = await serveFiles(t)
  const path = join(server.home, 'shrinking')
  await mkdir(path)
  await writeFile(join(path, 'file'), '')
  await truncate(join(path, 'file'), 256 * 1024 * 1024)
  const response = await fetch(`${server.url}/download?path=shrinking`)
  const body = Readable.fromWeb(response.body ?? (t.fail() as never))
  // Read past the tar headers: from here on the file has a declared size.
  for (let received = 0; received < 4096; received += body.read()?.length ?? 0) await once(body, 'readable')
  await truncate(join(path, 'file'), 0)
  await t.rejects(async () => {
    for await (const _ of body);
  })
})

t.test('the path of every entry starts with the name of the downloaded directory', async (t) => {
  const tar = await buffer(archiveDirectory(dir, LIMITS.transferBytes, NO_LIMITS))
  const names = execFileSync('tar', ['-t', '--quoting-style=literal'], { input: tar })
    .toString()
    .trim()
    .split('\n')
  t.ok(names.every((name) => name.startsWith('Ordner ü/')))
  await chmod(dir, 0o755)
})
