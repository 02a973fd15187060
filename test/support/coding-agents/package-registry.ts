// An npm registry on loopback with the packages of an installation, for tests in which a box installs a coding agent.
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { create } from 'tar'
import { createTempDir } from '../temp-dir.ts'

/**
 * Programs that an install script of the package has replaced. The registry has the package as it was published, with a
 * program that only prints an error.
 */
const REPLACED_PROGRAMS: Record<string, string> = { 'opencode-ai': 'bin/opencode.exe' }
const STUB = '#!/bin/sh\necho "the install script has not run" >&2\nexit 1\n'
/** Their addresses and hashes are those of another registry. */
const OMITTED = ['node_modules', 'npm-shrinkwrap.json']
/**
 * The installation of its 119 dependencies takes 20 s of CPU time. The test links the directory of this registry as
 * ~/node_modules, where Node finds them.
 */
const WITHOUT_DEPENDENCIES = ['@earendil-works/pi-coding-agent']

type Manifest = { name: string; version: string; dependencies?: Record<string, string> }
type InstalledPackage = { manifest: Manifest; dir: string }

/** @param nodeModules the directory with the packages. Optional packages that are not in it do not exist in the registry. */
export async function startPackageRegistry(
  t: { teardown(callback: () => unknown): void },
  nodeModules: string,
): Promise<{ url: string }> {
  const packages = Map.groupBy(listPackages(nodeModules), ({ manifest }) => manifest.name)
  const tempDir = createTempDir(t, 'package-registry')
  const getTarballPath = ({ name, version }: Manifest) =>
    `/${name}/-/${name.split('/').at(-1)}-${version}.tgz`
  const tarballs = new Map(
    [...packages.values()].flat().map((entry) => [getTarballPath(entry.manifest), entry] as const),
  )

  /** The directory of the package as it was published. */
  function restore({ manifest: { name }, dir }: InstalledPackage): string {
    const program = REPLACED_PROGRAMS[name]
    if (program === undefined) return dir
    const restored = join(tempDir, name)
    if (existsSync(restored)) return restored
    cpSync(dir, restored, { recursive: true, filter: (path) => path !== join(dir, program) })
    writeFileSync(join(restored, program), STUB, { mode: 0o755 })
    return restored
  }

  async function respond(path: string, response: ServerResponse): Promise<void> {
    const tarball = tarballs.get(path)
    const versions = packages.get(path.slice(1))
    if (tarball) {
      const dir = restore(tarball)
      // With ./, because tar reads @name as an archive.
      const entries = readdirSync(dir).flatMap((entry) => (OMITTED.includes(entry) ? [] : [`./${entry}`]))
      // Not compressed: npm accepts both.
      await pipeline(create({ cwd: dir, prefix: 'package', portable: true }, entries), response)
    } else if (versions) {
      const origin = `http://${response.req.headers.host}`
      const manifests = versions.map(({ manifest }) => [
        manifest.version,
        { ...manifest, dist: { tarball: origin + getTarballPath(manifest) } },
      ])
      const [latest] = versions.map(({ manifest }) => manifest.version)
      const document = {
        name: path.slice(1),
        'dist-tags': { latest },
        versions: Object.fromEntries(manifests),
      }
      response.setHeader('content-type', 'application/json').end(JSON.stringify(document))
    } else response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"not found"}')
  }

  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    respond(decodeURIComponent(pathname), response).catch((error: unknown) => {
      // npm has disconnected, or a file is not readable: npm reports the incomplete response.
      response.destroy(error instanceof Error ? error : undefined)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

/** Also the packages inside other packages. */
function listPackages(nodeModules: string): InstalledPackage[] {
  if (!existsSync(nodeModules)) return []
  const names = readdirSync(nodeModules).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(nodeModules, name)).map((inner) => join(name, inner)) : [name],
  )
  return names.flatMap((name) => {
    const dir = join(nodeModules, name)
    const file = join(dir, 'package.json')
    if (name.startsWith('.') || !existsSync(file)) return []
    const manifest: Manifest = JSON.parse(readFileSync(file, 'utf8'))
    if (WITHOUT_DEPENDENCIES.includes(name)) delete manifest.dependencies
    return [{ manifest, dir }, ...listPackages(join(dir, 'node_modules'))]
  })
}
