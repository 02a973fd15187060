// The secret files of an environment: modes, parents, symbolic links, removal, and files that cannot be written.
import { chmod, link, lstat, mkdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { applyFiles } from '../../../agent/environment/files.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { silentLog } from '../../support/tunnel.ts'

function setUp(t: Test) {
  const home = createTempDir(t, 'environment-files')
  const stateDir = join(home, '.state')
  const added: string[] = []
  const credentialFiles = { addSecretFile: (path: string) => void added.push(path) }
  const deps = { home, stateDir, credentialFiles, log: silentLog, sweepTempFiles: async () => undefined }
  return {
    home,
    added,
    at: (path: string) => join(home, path),
    apply: (files: Record<string, [content: string, mode: string]>, remove: string[] = []) =>
      applyFiles(
        {
          write: Object.entries(files).map(([path, [content, mode]]) => ({
            path,
            mode,
            contentBase64: Buffer.from(content).toString('base64'),
          })),
          remove,
        },
        deps,
      ),
  }
}
const modeOf = async (path: string) => ((await lstat(path)).mode & 0o7777).toString(8)

t.test('writes files with their modes, and creates private directories above them', async (t) => {
  const { at, home, added, apply } = setUp(t)
  await mkdir(at('shared'), { mode: 0o755 })
  const files: Record<string, [string, string]> = {
    '~/.npmrc': ['token', '0600'],
    '~/.config/tool/key': ['key', '0400'],
    [`${home}/shared/run`]: ['#!/bin/sh\n', '755'],
  }
  t.same(await apply(files), { failed: [] })
  t.same(added, Object.keys(files), 'clients without the right to run commands cannot read them')
  t.equal(await readFile(at('.npmrc'), 'utf8'), 'token')
  t.equal(await modeOf(at('.npmrc')), '600')
  t.equal(await modeOf(at('.config/tool/key')), '400')
  t.equal(await modeOf(at('.config')), '700')
  t.equal(await modeOf(at('.config/tool')), '700')
  t.equal(await modeOf(at('shared')), '755')
  t.equal(await modeOf(at('shared/run')), '755')

  t.same(await apply({ '~/.config/tool/key': ['new key', '0400'] }), { failed: [] }, 'a read-only file')
  t.equal(await readFile(at('.config/tool/key'), 'utf8'), 'new key')
})

t.test('narrows the mode of a file that it cannot replace, and follows symbolic links', async (t) => {
  const { at, apply } = setUp(t)
  await writeFile(at('original'), 'old', { mode: 0o644 })
  await link(at('original'), at('hard-linked'))
  await mkdir(at('dotfiles'))
  await symlink('dotfiles/npmrc', at('.npmrc'))
  const files: Record<string, [string, string]> = {
    '~/hard-linked': ['secret', '0600'],
    '~/.npmrc': ['token', '0600'],
  }
  t.same(await apply(files), { failed: [] })
  t.equal(await readFile(at('original'), 'utf8'), 'secret')
  t.equal(await modeOf(at('original')), '600')
  t.equal(await readlink(at('.npmrc')), 'dotfiles/npmrc')
  t.equal(await readFile(at('dotfiles/npmrc'), 'utf8'), 'token')

  t.same(await apply({}, ['~/.npmrc', '~/missing', '~/hard-linked/below']), {
    failed: [{ path: '~/hard-linked/below', message: '~/hard-linked/below: not a directory.' }],
  })
  await t.rejects(stat(at('dotfiles/npmrc')), { code: 'ENOENT' })
})

t.test('a file that cannot be written does not prevent the others', async (t) => {
  const { at, apply } = setUp(t)
  await mkdir(at('directory'))
  await mkdir(at('.state'))
  await writeFile(at('file'), '')
  const files: Record<string, [string, string]> = {
    '~/directory': ['x', '0600'],
    '~/file/below': ['x', '0600'],
    '~/.state/token': ['x', '0600'],
    '~/.state/new/token': ['x', '0600'],
    '/proc/boxwood/file': ['x', '0600'],
    '~/last': ['x', '0600'],
  }
  const { failed } = await apply(files, ['~/directory', '~/.state/token'])
  t.same(
    failed.map(({ path }) => path),
    [
      '~/directory',
      '~/directory',
      '~/file/below',
      '~/.state/token',
      '~/.state/new/token',
      '/proc/boxwood/file',
    ],
  )
  for (const { path, message } of failed) t.match(message, /\.$/, `${path}: ${message}`)
  t.equal(await readFile(at('last'), 'utf8'), 'x')
  await t.rejects(stat(at('.state/new')), { code: 'ENOENT' })
})

t.test(
  'a directory without write permission',
  { skip: process.getuid?.() === 0 && 'runs as root' },
  async (t) => {
    const { at, apply } = setUp(t)
    await mkdir(at('read-only'))
    await chmod(at('read-only'), 0o500)
    t.match(await apply({ '~/read-only/a/b': ['x', '0600'] }), { failed: [{ path: '~/read-only/a/b' }] })
    await chmod(at('read-only'), 0o700)
  },
)

t.test('refuses an invalid request', async (t) => {
  const { home } = setUp(t)
  const deps = {
    home,
    credentialFiles: { addSecretFile: () => undefined },
    stateDir: join(home, '.state'),
    log: silentLog,
    sweepTempFiles: async () => undefined,
  }
  await t.rejects(applyFiles({ write: [{ path: '~/a' }], remove: [] }, deps), { code: 'invalid_request' })
})
