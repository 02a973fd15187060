// Opens TCP connections to listening ports of boxes.
import type { Duplex } from 'node:stream'
import type { AcquiredBox } from './acquire-box.ts'

/**
 * Connects to a listening TCP socket of a process of the box. A FIN of one side ends that direction only.
 * @throws ApiError not_found when nothing listens on the port; box_unreachable
 */
export type ConnectToPort = (acquired: AcquiredBox, port: number) => Promise<Duplex>
