// The listening ports of boxes (spec §4.5).
import type { BoxFinder } from '../../http/find-box.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import type { Heartbeats } from '../lifecycle/heartbeats.ts'
import { portRoutes } from './routes.ts'

export type PortsModuleContext = ModuleBase & { boxFinder: BoxFinder; heartbeats: Heartbeats }

export const portsModule = ({ clock, boxFinder, heartbeats }: PortsModuleContext): Module => ({
  routes: withTag('Boxes', portRoutes({ boxes: boxFinder, heartbeats, clock })),
})
