// Files that cannot be read for other reasons than the rights of the box user: the error is one of the request, unless a disk fails.
import { constants } from 'node:os'
import t from 'tap'
import { toFileError } from '../../../agent/files/errors.ts'
import { readEntireFile } from '../../../agent/files/read.ts'
import { query, readError, serveFiles } from './support.ts'

const createError = (code: string): Error =>
  Object.assign(new Error(code), {
    code,
    errno: -(constants.errno[code as keyof typeof constants.errno] ?? 1),
    syscall: 'read',
  })

t.test('system errors and their codes', async (t) => {
  const expected: Record<string, string[]> = {
    not_found: ['ENOENT', 'ENOTDIR', 'ESRCH', 'ESTALE'],
    permission_denied: ['EACCES', 'EPERM', 'EROFS', 'ETXTBSY', 'EBUSY'],
    invalid_path: [
      ...['EISDIR', 'ELOOP', 'ENAMETOOLONG', 'ENXIO', 'ENODEV', 'ENOMEDIUM', 'EINVAL', 'EILSEQ'],
      ...['EOVERFLOW', 'ESPIPE', 'ENOTSUP', 'ENOTTY', 'ENODATA'],
    ],
    exec_failed: ['EIO', 'ENOSPC', 'EDQUOT', 'EFBIG', 'EMFILE', 'ENFILE', 'ENOMEM'],
  }
  for (const [code, errors] of Object.entries(expected))
    for (const error of errors) t.match(toFileError(createError(error), '/a'), { code }, error)
})

t.test('a read that fails', async (t) => {
  const read = (code: string, blocks: number) => {
    const handle = { read: () => Promise.reject(createError(code)) }
    const stat = { size: 0, blocks }
    return readEntireFile({ path: '/a', handle, stat } as unknown as Parameters<typeof readEntireFile>[0], 10)
  }
  for (const code of ['EIO', 'EAGAIN', 'EFAULT', 'ENOSYS', 'ENOMSG', 'EPROTO', 'EINVAL'])
    await t.rejects(read(code, 0), { code: 'invalid_path', message: /^\/a: / }, `${code} of the kernel`)
  await t.rejects(read('EIO', 8), { code: 'exec_failed' }, 'of a disk')
  for (const blocks of [0, 8]) {
    await t.rejects(read('ESRCH', blocks), { code: 'not_found' }, 'the process has exited')
    await t.rejects(read('EACCES', blocks), { code: 'permission_denied' })
  }
})

t.test('files of the kernel', async (t) => {
  const { url } = await serveFiles(t)
  for (const path of ['/proc/self/mem', '/proc/thread-self/mem', `/proc/${process.pid}/task/../mem`])
    for (const route of ['/files', '/download']) {
      const response = await fetch(`${url}${route}${query(path)}`)
      t.match(await readError(response), { status: 400, code: 'invalid_path' }, `${route} ${path}`)
      t.equal((await fetch(`${url}/download${query(path)}`, { method: 'HEAD' })).status, 400)
    }
  t.equal(
    (await fetch(`${url}/files${query('/proc/self/clear_refs')}`)).status,
    process.getuid?.() === 0 ? 400 : 403,
  )
  t.equal((await fetch(`${url}/files${query('/proc/0/status')}`)).status, 404)
  t.equal((await fetch(`${url}/files${query('/proc/version')}`)).status, 200)
})
