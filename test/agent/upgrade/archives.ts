// Archives of builds, also hostile ones, with a signature.
import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import type { Test } from 'tap'
import { type Builds, type BuildsOptions, createBuilds } from '../../../agent/upgrade/builds.ts'
import { type AgentBuild, toSignedText } from '../../../shared/agent-build.ts'
import { createPadding, END_OF_ARCHIVE, encodeTarHeader, type TarEntry } from '../../../shared/tar.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { silentLog } from '../../support/tunnel.ts'

export const OLD_BUILD = '0000000000000000'
export const NEW_BUILD = '1111111111111111'

export type Entry = Partial<TarEntry> & { path: string; text?: string }

/** The entries of a build that can be installed. */
export const createEntries = (buildId: string): Entry[] => [
  { path: 'node', text: '#!/bin/sh\nexit 0\n', mode: 0o755 },
  { path: 'agent.mjs', text: 'agent' },
  { path: 'node_modules', type: 'directory', mode: 0o755 },
  { path: 'node_modules/a.js', text: 'a' },
  { path: 'supervise.sh', text: 'exit' },
  { path: 'agent-loop.sh', text: 'exit' },
  { path: 'build-id', text: buildId },
]

export function createArchive(entries: readonly Entry[]): Buffer {
  const blocks = entries.flatMap(({ path, text = '', ...entry }) => {
    const content = Buffer.from(text)
    const header = { mode: 0o644, uid: 1234, gid: 1234, mtime: 0, type: 'file' as const, ...entry }
    return [
      encodeTarHeader({ ...header, name: Buffer.from(path), size: content.length }),
      content,
      createPadding(content.length),
    ]
  })
  return gzipSync(Buffer.concat([...blocks, END_OF_ARCHIVE]))
}

const keys = generateKeyPairSync('ed25519')
export const otherKeys = generateKeyPairSync('ed25519')

export function describeArchive(
  archive: Buffer,
  changes: Partial<AgentBuild> = {},
  key = keys.privateKey,
): AgentBuild {
  const build = {
    platform: 'linux-x64',
    version: '0.1.0',
    buildId: NEW_BUILD,
    size: archive.length,
    sha256: createHash('sha256').update(archive).digest('hex'),
    ...changes,
  }
  return {
    ...build,
    signature: sign(null, Buffer.from(toSignedText(build)), key).toString('base64'),
    ...changes,
  }
}

/** A prefix whose current build is OLD_BUILD. */
export function createPrefix(t: Test, prefix = createTempDir(t, 'builds')): string {
  mkdirSync(join(prefix, 'versions', OLD_BUILD), { recursive: true })
  symlinkSync(`versions/${OLD_BUILD}`, join(prefix, 'current'))
  writeFileSync(join(prefix, 'coordinator.pub'), keys.publicKey.export({ type: 'spki', format: 'pem' }))
  return prefix
}

/** Builds of the prefix, whose coordinator serves this content. */
export function openBuilds(
  t: Test,
  prefix: string,
  content: Buffer | (() => Readable),
  options: Partial<BuildsOptions> = {},
): Builds {
  const builds = createBuilds({
    ...{ prefix, platform: 'linux-x64', buildId: OLD_BUILD, log: silentLog },
    fetchArchive: async () => (Buffer.isBuffer(content) ? Readable.from(splitBuffer(content)) : content()),
    ...options,
  })
  t.teardown(() => builds.close())
  return builds
}

export function* splitBuffer(content: Buffer): Generator<Buffer> {
  for (let at = 0; at < content.length; at += 100) yield content.subarray(at, at + 100)
}
