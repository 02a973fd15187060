// Starts nginx and Caddy with the configurations in install/proxies, changed only in names, ports and paths of files.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { PROJECT_DIR } from '../support/project.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { waitUntil } from '../support/wait-until.ts'

export const PROXIES = ['nginx', 'caddy'] as const
export type ProxyName = (typeof PROXIES)[number]

/** A self-signed certificate for localhost and 127.0.0.1. */
export const CERTIFICATE = join(PROJECT_DIR, 'test/fixtures/tls/cert.pem')
const PRIVATE_KEY = join(PROJECT_DIR, 'test/fixtures/tls/key.pem')

/** Throws when the text does not contain `from`: the configuration has changed. */
function replace(text: string, from: string, to: string): string {
  if (!text.includes(from)) throw new Error(`The configuration has no ${from}`)
  return text.replaceAll(from, to)
}

type CommandOptions = {
  dir: string
  port: number
  httpPort: number
  target: string | readonly string[]
  hasPath: boolean
}

/** The server of a host with other programs, which includes the configuration for a path. */
const createServerWithPath = (dir: string, port: number) => `
  server {
    listen 127.0.0.1:${port} ssl http2;
    ssl_certificate ${dir}/cert.pem;
    ssl_certificate_key ${dir}/key.pem;
    location / { return 200 "another program"; }
    include ${dir}/boxwood.conf;
  }`

function createNginxCommand({ dir, port, httpPort, target, hasPath }: CommandOptions): string[] {
  if (hasPath) {
    const snippet = readFileSync(join(PROJECT_DIR, 'install/proxies/nginx-path.conf'), 'utf8')
    writeFileSync(join(dir, 'boxwood.conf'), replace(snippet, '127.0.0.1:7070', String(target)))
    return writeNginxConfig(dir, createServerWithPath(dir, port))
  }
  let text = readFileSync(join(PROJECT_DIR, 'install/proxies/nginx.conf'), 'utf8')
  text = replace(text, 'boxes.example.com *.ports.example-ports.net;', 'localhost *.ports.localhost;')
  text = replace(text, '/etc/ssl/boxes.example.com/fullchain.pem', join(dir, 'cert.pem'))
  text = replace(text, '/etc/ssl/boxes.example.com/privkey.pem', join(dir, 'key.pem'))
  text = replace(text, 'listen 443 ', `listen 127.0.0.1:${port} `)
  text = replace(text, 'listen 80;', `listen 127.0.0.1:${httpPort};`)
  text = text.replaceAll(/^ *listen \[::\]:.*$/gm, '')
  if (typeof target === 'string') return writeNginxConfig(dir, replace(text, '127.0.0.1:7070', target))
  text = withReplicas(text, 'nginx-replicas.conf', /^upstream .*?^}\n/ms, target)
  // The comment has lines for the location.
  const [, lines = ''] = /((?:^# {3}proxy_.*\n)+)/m.exec(text) ?? []
  text = replace(text, '  location / {\n', `  location / {\n${lines.replaceAll('#', '')}`)
  return writeNginxConfig(dir, text)
}

/** Replaces the block for one coordinator by the file for three replicas. */
function withReplicas(text: string, file: string, block: RegExp, targets: readonly string[]): string {
  if (!block.test(text)) throw new Error('The configuration has no block for one coordinator')
  let replicas = readFileSync(join(PROJECT_DIR, 'install/proxies', file), 'utf8')
  for (const [index, address] of ['10.0.0.4:7070', '10.0.0.5:7070', '10.0.0.6:7070'].entries())
    replicas = replace(replicas, address, targets[index] ?? '')
  return text.replace(block, () => replicas)
}

function writeNginxConfig(dir: string, site: string): string[] {
  writeFileSync(join(dir, 'site.conf'), site)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${join(dir, name)};`)
    .join('\n')
  writeFileSync(
    join(dir, 'nginx.conf'),
    `daemon off; master_process off; pid ${dir}/pid; error_log ${dir}/error.log warn;
     events {} http { access_log off; ${temporary} include ${dir}/site.conf; }`,
  )
  return ['nginx', '-p', dir, '-e', join(dir, 'error.log'), '-c', join(dir, 'nginx.conf')]
}

function createCaddyCommand({ dir, port, httpPort, target, hasPath }: CommandOptions): string[] {
  let text = readFileSync(join(PROJECT_DIR, 'install/proxies/Caddyfile'), 'utf8')
  const certificate = `tls ${join(dir, 'cert.pem')} ${join(dir, 'key.pem')}`
  const site = `localhost:${port}, 127.0.0.1:${port} {\n\tbind 127.0.0.1\n\t${certificate}`
  if (hasPath) {
    text = replace(text, '\nboxes.example.com {\n\timport boxwood\n}\n', '')
    // The lines for a path are comments.
    text = replace(text.replaceAll(/^#(?=\S|\t)/gm, ''), '\nwww.example.com {', `\n${site}`)
    text = replace(text, 'handle_path', 'respond / "another program"\n\thandle_path')
  } else text = replace(text, '\nboxes.example.com {', `\n${site}`)
  text = replace(
    text,
    '*.ports.example-ports.net {\n\ttls ',
    `*.ports.localhost:${port} {\n\tbind 127.0.0.1\n\ttls `,
  )
  text = replace(text, '/etc/ssl/ports.example-ports.net/fullchain.pem', join(dir, 'cert.pem'))
  text = replace(text, '/etc/ssl/ports.example-ports.net/privkey.pem', join(dir, 'key.pem'))
  text =
    typeof target === 'string'
      ? replace(text, '127.0.0.1:7070', target)
      : withReplicas(text, 'Caddyfile-replicas', /^\(boxwood\) \{.*?^\}\n/ms, target)
  text = `{\n\tadmin off\n\thttp_port ${httpPort}\n\tauto_https disable_redirects\n}\n${text}`
  writeFileSync(join(dir, 'Caddyfile'), text)
  return ['caddy', 'run', '--adapter', 'caddyfile', '--config', join(dir, 'Caddyfile')]
}

/** The path in the configurations. */
const PATH = '/boxwood'

/**
 * @param target of the coordinator, as host:port; a list: of three replicas
 * @param hasPath whether the proxy adds a path, and has another program at its other paths
 */
export async function startProxy(
  t: Test,
  name: ProxyName,
  target: string | readonly string[],
  hasPath = false,
) {
  const dir = createTempDir(t, name)
  cpSync(CERTIFICATE, join(dir, 'cert.pem'))
  cpSync(PRIVATE_KEY, join(dir, 'key.pem'))
  const [port, httpPort] = [await findFreePort(), await findFreePort()]
  const createCommand = name === 'nginx' ? createNginxCommand : createCaddyCommand
  const command = createCommand({ dir, port, httpPort, target, hasPath })
  const { readLog } = await launch(t, name, command, { dir, port })
  return { url: `https://127.0.0.1:${port}${hasPath ? PATH : ''}`, port, httpPort, readLog }
}

/**
 * Starts Caddy with the configuration for links alone. Its own authority signs the certificates, which takes no time and no name
 * in the DNS.
 * @param target of the coordinator, as host:port
 * @param base the name above those of links
 * @returns `port` for HTTPS
 */
export async function startLinksProxy(t: Test, target: string, base: string) {
  const dir = createTempDir(t, 'caddy-links')
  const [port, httpPort] = [await findFreePort(), await findFreePort()]
  let text = readFileSync(join(PROJECT_DIR, 'install/proxies/Caddyfile-links'), 'utf8')
  const options = `{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n\thttp_port ${httpPort}\n\thttps_port ${port}\n`
  text = replace(text, '\n{\n', `\n${options}`)
  text = replace(text, '203-0-113-5.sslip.io', base)
  text = replace(text, '\ttls {', '\tbind 127.0.0.1\n\ttls {')
  writeFileSync(join(dir, 'Caddyfile'), replace(text, '127.0.0.1:7070', target))
  const command = ['caddy', 'run', '--adapter', 'caddyfile', '--config', join(dir, 'Caddyfile')]
  await launch(t, 'caddy', command, { dir, port })
  return { port }
}

/**
 * Starts Caddy with the configuration for three replicas at the addresses in it, over HTTP.
 * @param address of this machine, at which the replicas reach the proxy
 */
export async function startReplicasProxy(t: Test, address: string) {
  const dir = createTempDir(t, 'caddy-replicas')
  const port = await findFreePort()
  const replicas = readFileSync(join(PROJECT_DIR, 'install/proxies/Caddyfile-replicas'), 'utf8')
  const site = `http://:${port} {\n\timport boxwood\n}\n`
  writeFileSync(join(dir, 'Caddyfile'), `{\n\tadmin off\n\tauto_https off\n}\n${replicas}\n${site}`)
  const command = ['caddy', 'run', '--adapter', 'caddyfile', '--config', join(dir, 'Caddyfile')]
  const { readLog } = await launch(t, 'caddy', command, { dir, port })
  return { url: `http://${address}:${port}`, readLog }
}

/** Resolves when the proxy listens at the port. The end of the test stops it. */
async function launch(
  t: Test,
  name: ProxyName,
  [program = '', ...args]: string[],
  { dir, port }: { dir: string; port: number },
) {
  mkdirSync(join(dir, 'home'))
  const child = spawn(program, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      PATH: `${process.env.PATH}:/usr/sbin`,
      HOME: join(dir, 'home'),
      XDG_DATA_HOME: dir,
      XDG_CONFIG_HOME: dir,
    },
  })
  let output = ''
  child.stderr.on('data', (data: Buffer) => {
    output += data.toString()
  })
  const exited = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGTERM')
    await exited
  })
  await waitUntil(`${name} listens`, async () => {
    if (child.exitCode !== null) throw new Error(`${name} exited: ${output}${readLog()}`)
    return canConnect(port)
  })

  function readLog(): string {
    return name === 'nginx' ? readFileSync(join(dir, 'error.log'), 'utf8') : output
  }
  return { readLog }
}

export async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

export async function canConnect(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
