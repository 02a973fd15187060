// A root file system of busybox, and the Incus image that contains it.
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { findProgram, requires } from '../requires.ts'

/** Runs as pid 1: reaps orphans, and terminates all processes on SIGPWR, with which Incus stops a container. */
export const INIT = `#!/bin/sh
trap 'stopping=1' PWR TERM
mount -t tmpfs tmpfs /run
while [ -z "$stopping" ]; do
  sleep 1000000 &
  wait $!
done
kill -TERM -1
attempts=0
while kill -0 -1 2>/dev/null && [ $attempts -lt 50 ]; do
  sleep 0.02
  attempts=$((attempts + 1))
done
`

const DIRECTORIES = ['bin', 'dev', 'etc', 'proc', 'root', 'run', 'sbin', 'sys', 'tmp', 'usr/bin', 'var/lib']

/** Why the tree cannot be built on this machine, as a sentence. undefined: it can. */
export const findBusyboxProblem = (): string | undefined => requires('busybox') || undefined

/** Creates the root file system in the directory, which must not exist. Its commands are those of busybox. */
export function buildBusyboxTree(dir: string): void {
  const busybox = findProgram('busybox')
  if (busybox === undefined) throw new Error('busybox is not installed')
  for (const name of DIRECTORIES) mkdirSync(join(dir, name), { recursive: true })
  chmodSync(join(dir, 'tmp'), 0o1777)
  copyFileSync(busybox, join(dir, 'bin/busybox'))
  for (const library of listLibraries(busybox)) {
    mkdirSync(dirname(join(dir, library)), { recursive: true })
    copyFileSync(library, join(dir, library))
  }
  const applets = execFileSync(busybox, ['--list'], { encoding: 'utf8' }).trim().split('\n')
  for (const applet of applets) {
    if (basename(applet) !== applet || existsSync(join(dir, 'bin', applet))) continue
    symlinkSync('busybox', join(dir, 'bin', applet))
  }
  writeFileSync(join(dir, 'sbin/init'), INIT, { mode: 0o755 })
  writeFileSync(join(dir, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n')
  writeFileSync(join(dir, 'etc/group'), 'root:x:0:\n')
}

/** The libraries of a program, with its loader. Empty for a static one. */
function listLibraries(program: string): string[] {
  try {
    const output = execFileSync('ldd', [program], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    return [...output.matchAll(/(?:=> |^\s*)(\/\S+)/gm)].flatMap(([, path]) => path ?? [])
  } catch {
    return []
  }
}

/** Writes an Incus image, a tar file, which contains the root file system in the directory. */
export function packIncusImage(rootfs: string, file: string): void {
  const metadataDir = mkdtempSync(`${file}-`)
  const architecture = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
  writeFileSync(
    join(metadataDir, 'metadata.yaml'),
    `architecture: ${architecture}\ncreation_date: 1700000000\nproperties: {os: test, description: test}\n`,
  )
  const flags = ['--numeric-owner', '--owner=0', '--group=0', `--transform=flags=rh;s,^\\./,rootfs/,`]
  execFileSync('tar', [
    '--create',
    `--file=${file}`,
    ...flags,
    '-C',
    metadataDir,
    'metadata.yaml',
    '-C',
    rootfs,
    './',
  ])
  rmSync(metadataDir, { recursive: true })
}
