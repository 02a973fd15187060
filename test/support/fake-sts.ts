// The Security Token Service of AWS on loopback: AssumeRoleWithWebIdentity and GetCallerIdentity. It verifies tokens as AWS does:
// by the documents of the issuer and by the trust policy of the role.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as readText } from 'node:stream/consumers'
import { createLocalJWKSet, decodeJwt, errors, type JSONWebKeySet, type JWTPayload, jwtVerify } from 'jose'
import type { Test } from 'tap'
import { AWS_SESSION_NAME_PATTERN } from '../../shared/field-values.ts'
import { renderAssumedRole, renderCallerIdentity, renderError, StsError } from './sts/sts-responses.ts'
import { allows, type TrustPolicy } from './sts/trust-policy.ts'

export type FakeStsOptions = {
  issuer: string
  /** Where the documents of the issuer are on this machine. */
  readDocument(path: string): Promise<unknown>
  /** The time of AWS, in milliseconds since the epoch. */
  now(): number
}

/** A request and its result: an error code, or null. */
export type StsCall = { action: string; roleArn: string | null; subject: string | null; error: string | null }

export type FakeSts = {
  /** The endpoint, over HTTP. */
  url: string
  /** Serves the same over another server, such as one with TLS. */
  listener: RequestListener
  /** The trust policies of the existing roles, by ARN. */
  roles: Map<string, TrustPolicy>
  calls: StsCall[]
}

type Issued = { arn: string; roleId: string; account: string; sessionToken: string; expiresAt: number }

/** The keys of an issuer are read at most this often, also for a token whose key is unknown: the strictest cache that AWS may have. */
const KEYS_CACHE_MS = 24 * 3_600_000
const AUDIENCE = 'sts.amazonaws.com'
const ROLE_ARN = /^arn:aws:iam::(\d{12}):role\/(?:.*\/)?([^/]+)$/

export async function startFakeSts(t: Test, options: FakeStsOptions): Promise<FakeSts> {
  const sts = new Sts(options)
  const listener: RequestListener = (request, response) => void sts.handle(request, response)
  const server = createServer(listener)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, listener, roles: sts.roles, calls: sts.calls }
}

class Sts {
  readonly roles = new Map<string, TrustPolicy>()
  readonly calls: StsCall[] = []
  #options: FakeStsOptions
  #issued = new Map<string, Issued>()
  #keys: { jwks: JSONWebKeySet; readAt: number } | null = null

  constructor(options: FakeStsOptions) {
    this.#options = options
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const fields = new URLSearchParams(await readText(request))
    const call: StsCall = {
      action: fields.get('Action') ?? '',
      roleArn: fields.get('RoleArn'),
      subject: null,
      error: null,
    }
    this.calls.push(call)
    const respond = (status: number, xml: string) =>
      response.writeHead(status, { 'content-type': 'text/xml' }).end(xml)
    try {
      if (call.action === 'AssumeRoleWithWebIdentity')
        return void respond(200, await this.#assumeRole(fields, call))
      if (call.action === 'GetCallerIdentity') return void respond(200, this.#identify(request))
      throw new StsError('InvalidAction', `Could not find operation ${call.action}`)
    } catch (error) {
      const stsError = error instanceof StsError ? error : new StsError('InternalFailure', String(error), 500)
      call.error = stsError.code
      respond(stsError.status, renderError(stsError))
    }
  }

  async #assumeRole(fields: URLSearchParams, call: StsCall): Promise<string> {
    const sessionName = fields.get('RoleSessionName') ?? ''
    const seconds = Number(fields.get('DurationSeconds') ?? 3600)
    if (!AWS_SESSION_NAME_PATTERN.test(sessionName))
      throw new StsError('ValidationError', 'roleSessionName is invalid')
    if (!(seconds >= 900 && seconds <= 43_200))
      throw new StsError('ValidationError', 'durationSeconds is invalid')
    const claims = await this.#verify(fields.get('WebIdentityToken') ?? '')
    call.subject = claims.sub ?? null
    const [, account = '', name = ''] = ROLE_ARN.exec(call.roleArn ?? '') ?? []
    const policy = this.roles.get(call.roleArn ?? '')
    const { issuer, now } = this.#options
    if (
      policy === undefined ||
      !allows(policy, { issuer, account, audience: AUDIENCE, subject: claims.sub ?? '' })
    )
      throw new StsError('AccessDenied', 'Not authorized to perform sts:AssumeRoleWithWebIdentity', 403)
    const accessKeyId = `ASIA${randomBytes(8).toString('hex').toUpperCase()}`
    const issued = {
      arn: `arn:aws:sts::${account}:assumed-role/${name}/${sessionName}`,
      roleId: `AROA${Buffer.from(name).toString('hex').toUpperCase().slice(0, 16)}:${sessionName}`,
      account,
      sessionToken: randomBytes(48).toString('base64'),
      expiresAt: now() + seconds * 1000,
    }
    this.#issued.set(accessKeyId, issued)
    const secretAccessKey = randomBytes(30).toString('base64')
    return renderAssumedRole({
      ...issued,
      accessKeyId,
      secretAccessKey,
      audience: AUDIENCE,
      subject: claims.sub ?? '',
    })
  }

  async #verify(token: string): Promise<JWTPayload> {
    const { issuer, now } = this.#options
    const invalid = (message: string) => new StsError('InvalidIdentityToken', message)
    try {
      const unverified = decodeJwt(token)
      if (unverified.iss !== issuer)
        throw invalid(`No OpenIDConnect provider found in your account for ${unverified.iss}`)
      const getKey = createLocalJWKSet(await this.#readKeys())
      const { payload } = await jwtVerify(token, getKey, {
        issuer,
        algorithms: ['RS256'],
        currentDate: new Date(now()),
        requiredClaims: ['sub', 'aud', 'iat', 'exp'],
      })
      // AWS takes the authorized party for the audience.
      if ((payload.azp ?? payload.aud) !== AUDIENCE) throw invalid('Incorrect token audience')
      return payload
    } catch (error) {
      if (error instanceof errors.JWTExpired)
        throw new StsError(
          'ExpiredTokenException',
          'Token expired: current date/time must be before the expiration date/time',
        )
      throw error instanceof errors.JOSEError ? invalid(error.message) : error
    }
  }

  async #readKeys(): Promise<JSONWebKeySet> {
    const { issuer, readDocument, now } = this.#options
    if (this.#keys !== null && now() - this.#keys.readAt < KEYS_CACHE_MS) return this.#keys.jwks
    const configuration = (await readDocument('/.well-known/openid-configuration')) as Record<string, string>
    if (configuration.issuer !== issuer || !configuration.jwks_uri?.startsWith(`${issuer}/`))
      throw new StsError(
        'InvalidIdentityToken',
        "Couldn't retrieve verification key from your identity provider",
      )
    const jwks = (await readDocument(configuration.jwks_uri.slice(issuer.length))) as JSONWebKeySet
    this.#keys = { jwks, readAt: now() }
    return jwks
  }

  /** Does not verify the signature of the request: only who got the credentials has the session token. */
  #identify(request: IncomingMessage): string {
    const accessKeyId = /Credential=([^/]+)\//.exec(request.headers.authorization ?? '')?.[1] ?? ''
    const issued = this.#issued.get(accessKeyId)
    if (issued === undefined || request.headers['x-amz-security-token'] !== issued.sessionToken)
      throw new StsError('InvalidClientTokenId', 'The security token included in the request is invalid', 403)
    if (this.#options.now() >= issued.expiresAt)
      throw new StsError('ExpiredToken', 'The security token included in the request is expired', 403)
    return renderCallerIdentity(issued)
  }
}
