// The calls of the engine for the container of one box.

import { EngineStatusError, hasStatus, ignoreStatus } from '../engine-http/errors.ts'
import { INIT_STOP_SIGNAL } from '../parts/proc.ts'
import type { MachineState } from '../provider.ts'
import { ImageError } from '../provider.ts'
import type { Engine } from './engine.ts'
import { type Limits, toDockerUpdate, toPodmanUpdate } from './limits.ts'
import { getContainerName, getMachineRepository, getNextContainerName, LABELS } from './names.ts'

export type Container = {
  id: string
  state: Exclude<MachineState, 'absent'>
  /** Podman was killed during a stop. The processes may have exited. */
  isStopping: boolean
  /** Whether the engine stops it with INIT_STOP_SIGNAL. */
  handlesStop: boolean
  /** See LABELS. */
  creationId: string | undefined
  imageId: string
  limits: Partial<Limits>
}

type Inspected = {
  Id: string
  Image: string
  State: { Running?: boolean; Paused?: boolean; Status?: string; Pid?: number }
  Config: { Labels?: Record<string, string> | null; StopSignal?: string }
  HostConfig: Partial<Limits>
}

/** Between the signal that stops the init and SIGKILL. The agent delivers the last reports of the box. */
const GRACE_SECONDS = 10

/** Libpod's own routes, for what its copy of the Docker API does not have. */
export const LIBPOD = '/v4.0.0/libpod'

const pathOf = (boxId: string, action: string): string => `/containers/${getContainerName(boxId)}${action}`

/** Returns null when the box has no container. Throws when the name belongs to another program or coordinator. */
export async function findContainer(engine: Engine, boxId: string): Promise<Container | null> {
  const { http, deploymentId } = engine
  const inspected = (await inspect(engine, boxId)) ?? (await takeNextContainer(engine, boxId))
  if (inspected === undefined) return null
  if (inspected.Config.Labels?.[LABELS.coordinator] !== deploymentId)
    throw new Error(
      `The container ${getContainerName(boxId)} does not belong to this coordinator. Remove it with the command of ${http.name}.`,
    )
  const { Running: isRunning, Paused: isPaused } = inspected.State
  const { NanoCpus, Memory } = inspected.HostConfig
  return {
    id: inspected.Id,
    creationId: inspected.Config.Labels[LABELS.creation],
    imageId: inspected.Image,
    isStopping: isStopping(inspected),
    handlesStop: inspected.Config.StopSignal === INIT_STOP_SIGNAL,
    state: isPaused ? 'frozen' : isRunning || isInterrupted(inspected) ? 'running' : 'stopped',
    limits: { ...(NanoCpus && { NanoCpus }), ...(Memory && { Memory }) },
  }
}

const inspect = ({ http }: Engine, boxId: string): Promise<Inspected | undefined> =>
  http.json<Inspected>({ method: 'GET', path: pathOf(boxId, '/json') }).catch(ignoreStatus(404))

/** Podman that was killed during a start or a stop does not know that the processes run. */
const isInterrupted = (inspected: Inspected): boolean => {
  const { Status: status, Pid: pid = 0 } = inspected.State
  return isStopping(inspected) || (status === 'created' && pid > 0)
}

const isStopping = ({ State: state }: Inspected): boolean => state.Status === 'stopping'

/** A replacement was interrupted when the old container had been removed. */
async function takeNextContainer(engine: Engine, boxId: string): Promise<Inspected | undefined> {
  const path = `/containers/${getNextContainerName(boxId)}/rename`
  const query = { name: getContainerName(boxId) }
  const renamed = await engine.http.json({ method: 'POST', path, query }).then(() => true, ignoreStatus(404))
  return renamed === true ? await inspect(engine, boxId) : undefined
}

/**
 * Replaces the stopped container by another one with the same files.
 * @param create creates the next container, from an image with the files of the old one
 */
export async function replaceContainer(
  engine: Engine,
  boxId: string,
  create: (name: string, image: string) => Promise<void>,
): Promise<void> {
  const { http, deploymentId } = engine
  const repo = getMachineRepository(deploymentId)
  await http.json({
    method: 'POST',
    path: '/commit',
    query: { container: getContainerName(boxId), repo, tag: boxId, pause: false },
    json: {},
    // The engine copies the layer.
    timeoutMs: null,
  })
  const next = getNextContainerName(boxId)
  await forceRemove(engine, next)
  await create(next, `${repo}:${boxId}`)
  await forceRemove(engine, getContainerName(boxId))
  await takeNextContainer(engine, boxId)
}

/** Removes the image of a box whose container was replaced. No-op when absent, or in use. */
export async function removeMachineImage({ http, deploymentId }: Engine, boxId: string): Promise<void> {
  const path = `/images/${getMachineRepository(deploymentId)}:${boxId}`
  await http.json({ method: 'DELETE', path }).catch(ignoreStatus(404, 409))
}

/** A killed engine leaves its record of a container that it was starting, so that the container never starts again. */
export const isStaleTask = (error: unknown): boolean =>
  hasStatus(error, 500) && /\btask\b.*already exists/.test(error.reason)

/** Podman that was killed during a start has left a part of it, which the failed start has removed. */
export const isInterruptedStart = (error: unknown): boolean =>
  hasStatus(error, 500) && /\bcontainer\b.*already exists|duplicate allocation/.test(error.reason)

/** `docker network prune` removes the networks of stopped containers, which refer to them by their ids. */
export const isMissingNetwork = (error: unknown): boolean =>
  hasStatus(error, 404) && /\bnetwork\b.*not found/i.test(error.reason)

/** Throws ImageError when the image cannot run a box. No-op when the container runs. */
export async function startContainer({ http }: Engine, boxId: string): Promise<void> {
  try {
    await http.json({ method: 'POST', path: pathOf(boxId, '/start') })
  } catch (error) {
    if (
      error instanceof EngineStatusError &&
      /\/bin\/sh\b.*(no such file|not found|exec format)/is.test(error.reason)
    )
      throw new ImageError(
        'image_unusable',
        `The image has no /bin/sh that runs on this machine, which boxes need: ${error.reason}`,
        { cause: error },
      )
    throw error
  }
}

/** No-op when the container has stopped or is absent. */
export async function stopContainer(engine: Engine, boxId: string): Promise<void> {
  const container = await findContainer(engine, boxId)
  if (container === null || container.state === 'stopped') return
  // A signal has no effect on a paused process.
  if (container.state === 'frozen') await unpauseContainer(engine, boxId)
  // The engine sends TERM to a container of an earlier version, whose init may be newer.
  if (!container.handlesStop)
    await engine.http
      .json({ method: 'POST', path: pathOf(boxId, '/kill'), query: { signal: INIT_STOP_SIGNAL } })
      .catch(() => undefined)
  await engine.http
    .json({ method: 'POST', path: pathOf(boxId, '/stop'), query: { t: GRACE_SECONDS } })
    .catch(ignoreStatus(404))
}

/** Stops the container when a killed engine has not ended its start or its stop: it can be neither used nor started. */
export async function stopInterrupted(engine: Engine, boxId: string): Promise<void> {
  const inspected = await inspect(engine, boxId)
  if (inspected !== undefined && isInterrupted(inspected)) await stopContainer(engine, boxId)
}

/** Returns false, with no effect, where the engine cannot pause the container. */
export async function pauseContainer({ http, log }: Engine, boxId: string): Promise<boolean> {
  try {
    await http.json({ method: 'POST', path: pathOf(boxId, '/pause') })
    return true
  } catch (error) {
    // The container is paused already, has stopped, or the engine has no freezer.
    if (!hasStatus(error, 409, 500)) throw error
    log.debug({ err: error, boxId }, 'the engine did not pause a container')
    return false
  }
}

/** No-op when the container is not paused. */
export async function unpauseContainer({ http }: Engine, boxId: string): Promise<void> {
  await http.json({ method: 'POST', path: pathOf(boxId, '/unpause') }).catch((error: unknown) => {
    if (!hasStatus(error, 409, 500) || !/not paused/i.test(error.reason)) throw error
  })
}

/** Removes the container. No-op when absent. */
export async function removeContainer(engine: Engine, boxId: string): Promise<void> {
  await forceRemove(engine, getNextContainerName(boxId))
  const container = await findContainer(engine, boxId)
  // A call that the engine does late must not remove a container that was created afterwards.
  if (container !== null) await forceRemove(engine, container.id)
}

/** Removes the volumes that the image declares too. No-op when absent. */
const forceRemove = ({ http }: Engine, nameOrId: string): Promise<unknown> =>
  http
    .json({ method: 'DELETE', path: `/containers/${nameOrId}`, query: { force: true, v: true } })
    .catch(ignoreStatus(404))

/** Returns false where the engine cannot change the limits. Podman changes only containers that run. */
export async function updateContainer(
  { http, kind, log }: Engine,
  boxId: string,
  limits: Partial<Limits>,
): Promise<boolean> {
  try {
    if (kind === 'docker')
      await http.json({ method: 'POST', path: pathOf(boxId, '/update'), json: toDockerUpdate(limits) })
    else
      await http.json({
        method: 'POST',
        path: `${LIBPOD}${pathOf(boxId, '/update')}`,
        json: toPodmanUpdate(limits),
      })
    return true
  } catch (error) {
    // Such as less memory than the processes use.
    if (!(error instanceof EngineStatusError)) throw error
    log.info({ err: error, boxId }, 'the engine did not change the limits of a container')
    return false
  }
}
