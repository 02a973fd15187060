// The servers that the tools of the tests use, on one TLS port of loopback: an API that sends back what it received, a git
// repository, a package registry, the API of GitHub, and the APIs of models.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { type IncomingMessage, request as requestHttp, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { startUpstream } from '../../support/broker/upstream.ts'
import { findProgram } from '../../support/requires.ts'
import { createTempDir } from '../../support/temp-dir.ts'

export const HOSTS = {
  api: 'api.example.com',
  git: 'git.example.com',
  registry: 'registry.npmjs.org',
  github: 'api.github.com',
  anthropic: 'api.anthropic.com',
  openai: 'api.openai.com',
} as const

export type ReceivedRequest = { host: string; path: string; headers: IncomingMessage['headers'] }

export type ToolServers = {
  port: number
  /** The certificate of its authority, PEM. */
  ca: string
  requests: ReceivedRequest[]
  /** The values of Authorization, and of x-api-key, that the host has received. */
  credentials(host: string): string[]
}

/** @param modelsUrl a fake model server */
export async function startToolServers(t: Test, modelsUrl?: string): Promise<ToolServers> {
  const repository = findProgram('git') === undefined ? '' : createRepository(t)
  const requests: ReceivedRequest[] = []
  const record = ({ headers, url = '' }: IncomingMessage): ReceivedRequest => {
    const request = { host: headers.host ?? '', path: url, headers }
    requests.push(request)
    return request
  }
  const upstream = await startUpstream(t, (request, response) => {
    const { host, path } = record(request)
    if (host === HOSTS.git) serveRepository(repository, request, response)
    else if (host === HOSTS.registry) sendJson(response, { username: 'tester' })
    else if (host === HOSTS.github) sendJson(response, { login: 'tester', path })
    else if (modelsUrl !== undefined && isModelApi(host)) forward(request, response, modelsUrl)
    else sendJson(response, { received: request.headers })
  })
  upstream.http.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    record(request)
    if (modelsUrl === undefined) return void socket.destroy()
    forwardUpgrade(request, socket, head, new URL(modelsUrl))
  })
  return {
    port: upstream.port,
    ca: upstream.authority.certificate,
    requests,
    credentials: (host) =>
      requests
        .filter((request) => request.host === host)
        .flatMap(({ headers }) => [headers.authorization, headers['x-api-key']])
        .filter((value) => typeof value === 'string'),
  }
}

const isModelApi = (host: string): boolean => host === HOSTS.anthropic || host === HOSTS.openai

function sendJson(response: ServerResponse, body: object): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

/** A bare repository with one commit. */
function createRepository(t: Test): string {
  const dir = createTempDir(t, 'repository')
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], {
      cwd: dir,
      env: { PATH: process.env.PATH, HOME: dir },
      stdio: 'ignore',
    })
  git('init', '--initial-branch=main', 'work')
  git('-C', 'work', 'commit', '--allow-empty', '--message=first')
  git('clone', '--bare', 'work', 'bare')
  git('-C', 'bare', 'update-server-info')
  return join(dir, 'bare')
}

/** The protocol of git for servers of static files, with a credential. */
function serveRepository(repository: string, request: IncomingMessage, response: ServerResponse): void {
  if (request.headers.authorization === undefined)
    return void response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="git"' }).end()
  const { pathname } = new URL(request.url ?? '/', 'https://git')
  try {
    response.writeHead(200).end(readFileSync(join(repository, pathname.replace(/^\/team\/project\.git/, ''))))
  } catch {
    response.writeHead(404).end()
  }
}

function forward(request: IncomingMessage, response: ServerResponse, url: string): void {
  const { method, headers, url: path = '/' } = request
  const forwarded = requestHttp(new URL(path, url), { ...(method && { method }), headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(response)
  })
  forwarded.on('error', () => response.destroy())
  response.on('close', () => forwarded.destroy())
  request.pipe(forwarded)
}

function forwardUpgrade(request: IncomingMessage, socket: Socket, head: Buffer, { port }: URL): void {
  const target = connect(Number(port), '127.0.0.1')
  const { rawHeaders, url = '/' } = request
  const lines = rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [`${name}: ${rawHeaders[index + 1]}\r\n`] : [],
  )
  target.write(`GET ${url} HTTP/1.1\r\n${lines.join('')}\r\n`)
  target.write(head)
  socket.pipe(target).pipe(socket)
  socket.on('error', () => undefined).on('close', () => target.destroy())
  target.on('error', () => undefined).on('close', () => socket.destroy())
}
