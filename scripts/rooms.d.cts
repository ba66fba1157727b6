export interface Room {
  name: string;
  level: number;
}

export const rooms: Room[];
export const shut: Record<string, string[]>;
export const browserRooms: string[];
export const impureFrom: number;
export const portFiles: string[];
export const portRooms: string[];
export const privateRooms: string[];
