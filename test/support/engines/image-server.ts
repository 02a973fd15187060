// A simplestreams server with one image, which listens in the network namespace of an Incus server.
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { waitUntil } from '../wait-until.ts'
import type { Incusd } from './incus.ts'

const PORT = 8080

/** Serves the files of the directory. Requests of a file that does not exist get 404. */
const SERVE = `
const { createServer } = require('node:http')
const { readFile } = require('node:fs')
const { join } = require('node:path')
createServer((request, response) => {
  readFile(join(process.argv[1], request.url), (error, content) => {
    response.statusCode = error ? 404 : 200
    response.end(content)
  })
}).listen(${PORT}, '127.0.0.1', () => console.log('ready'))`

export type ImageServer = { url: string; kill(): void }

/** Starts a server with the image `name/release`. @param rootfs a directory; see buildBusyboxTree() */
export async function startImageServer(
  incusd: Pick<Incusd, 'dir' | 'namespacesPid'>,
  { rootfs, name, release }: { rootfs: string; name: string; release: string },
): Promise<ImageServer> {
  const dir = join(incusd.dir, 'image-server')
  writeProducts(dir, rootfs, name, release)
  const args = [`--target=${incusd.namespacesPid}`, '--net', '--', process.execPath, '-e', SERVE, dir]
  const server = spawn('nsenter', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  server.stdout.on('data', (chunk) => {
    output += chunk
  })
  await waitUntil('the image server listens', () => output.includes('ready'))
  return { url: `http://127.0.0.1:${PORT}`, kill: () => void server.kill('SIGKILL') }
}

function writeProducts(dir: string, rootfs: string, name: string, release: string): void {
  const [arch, architecture] = process.arch === 'arm64' ? ['arm64', 'aarch64'] : ['amd64', 'x86_64']
  mkdirSync(join(dir, 'streams/v1'), { recursive: true })
  const metadata = `architecture: ${architecture}\ncreation_date: 1700000000\nproperties: {os: ${name}}\n`
  writeFileSync(join(dir, 'metadata.yaml'), metadata)
  const pack = (file: string, from: string, entry: string) =>
    execFileSync('tar', [
      '--create',
      '--xz',
      '--owner=0',
      '--group=0',
      `--file=${join(dir, file)}`,
      '-C',
      from,
      entry,
    ])
  pack('incus.tar.xz', dir, 'metadata.yaml')
  pack('rootfs.tar.xz', rootfs, '.')
  const items = ['incus.tar.xz', 'rootfs.tar.xz'].map((file) => readFileSync(join(dir, file)))
  const hash = (...parts: Buffer[]) =>
    parts.reduce((sum, part) => sum.update(part), createHash('sha256')).digest('hex')
  const [meta = Buffer.alloc(0), root = Buffer.alloc(0)] = items
  const describe = (ftype: string, path: string, content: Buffer) => ({
    ftype,
    path,
    size: statSync(join(dir, path)).size,
    sha256: hash(content),
  })
  const product = `${name}:${release}:${arch}:default`
  const version = {
    items: {
      'incus.tar.xz': {
        ...describe('incus.tar.xz', 'incus.tar.xz', meta),
        combined_rootxz_sha256: hash(meta, root),
      },
      'root.tar.xz': describe('root.tar.xz', 'rootfs.tar.xz', root),
    },
  }
  const write = (file: string, value: object) =>
    writeFileSync(join(dir, 'streams/v1', file), JSON.stringify(value))
  write('images.json', {
    content_id: 'images',
    datatype: 'image-downloads',
    format: 'products:1.0',
    products: {
      [product]: {
        aliases: `${name}/${release}/default,${name}/${release}`,
        arch,
        os: name,
        release,
        release_title: release,
        variant: 'default',
        versions: { '20260101_00:00': version },
      },
    },
  })
  write('index.json', {
    format: 'index:1.0',
    index: {
      images: {
        datatype: 'image-downloads',
        path: 'streams/v1/images.json',
        format: 'products:1.0',
        products: [product],
      },
    },
  })
}
