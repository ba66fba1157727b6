export interface Random {
  chance(probability: number): boolean;
  int(below: number): number;
}

export type Fault = (random: Random) => Promise<void>;

export function faultProxy(port: number): Promise<{
  port: number;
  cut: Fault;
  swallow: Fault;
  delay: Fault;
  close(): Promise<void>;
}>;
