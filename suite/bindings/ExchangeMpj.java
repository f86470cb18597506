// Exchange between two ranks in Java by MPJ Express, arrays; its ranks are threads of one JVM. See README.md.
import java.util.Locale;
import mpi.Intracomm;
import mpi.MPI;

class ExchangeMpj {
    static final String PINGPONG = "pingpong", BCAST = "bcast", ALLREDUCE = "allreduce";
    static final String ALLTOALL = "alltoall", BARRIER = "barrier";
    // The clock is not MPI.Wtime, which counts milliseconds
    static final int RANKS = 2, COMPILED = 10; // times as many calls before those that are timed
    final Intracomm world = MPI.COMM_WORLD; // nothing that a rank has is static
    final int rank;
    final double[] out, in;

    ExchangeMpj(int bytes) throws Exception {
        rank = world.Rank();
        out = new double[RANKS * bytes / Double.BYTES];
        in = new double[RANKS * bytes / Double.BYTES];
    }

    static double value(int from, int batch, int i) {
        return 1 + (31 * from + 7 * batch + i) % 251;
    }

    void fill(String routine, int batch, int count) {
        for (int i = 0; i < count; i++) {
            out[i] = value(rank, batch, i);
            in[i] = routine == BCAST && rank == 0 ? out[i] : 0;
        }
    }

    double countWrong(String routine, int batch, int count) {
        double wrong = 0;
        for (int i = 0; i < count; i++) {
            double first = value(0, batch, i), second = value(1, batch, i);
            double expected = routine == BCAST || rank == 1 ? first : second;
            if (routine == ALLREDUCE) expected = first + second;
            if (routine == ALLTOALL) {
                int half = count / RANKS;
                expected = value(i / half, batch, rank * half + i % half);
            }
            wrong += in[i] == expected ? 0 : 1;
        }
        return wrong;
    }

    void call(String routine, int count) throws Exception {
        if (routine == BCAST) {
            world.Bcast(in, 0, count, MPI.DOUBLE, 0);
        } else if (routine == ALLREDUCE) {
            world.Allreduce(out, 0, in, 0, count, MPI.DOUBLE, MPI.SUM);
        } else if (routine == ALLTOALL) {
            world.Alltoall(out, 0, count / RANKS, MPI.DOUBLE, in, 0, count / RANKS, MPI.DOUBLE);
        } else if (routine == BARRIER) {
            world.Barrier();
        } else if (rank == 0) {
            world.Send(out, 0, count, MPI.DOUBLE, 1, 0);
            world.Recv(in, 0, count, MPI.DOUBLE, 1, 0);
        } else {
            world.Recv(in, 0, count, MPI.DOUBLE, 0, 0);
            world.Send(out, 0, count, MPI.DOUBLE, 0, 0);
        }
    }

    void measure(String routine, int bytes, int calls, int batches) throws Exception {
        int count = bytes / Double.BYTES * (routine == ALLTOALL ? RANKS : 1);
        double[] mine = new double[1], all = new double[1], seconds = new double[batches];
        double wrong = 0;
        for (int batch = 0; batch < 2 * batches; batch++) {
            fill(routine, batch, count);
            world.Barrier();
            int made = batch < batches ? COMPILED * calls : calls;
            double begin = System.nanoTime() * 1e-9;
            for (int n = 0; n < made; n++) call(routine, count);
            mine[0] = (System.nanoTime() * 1e-9 - begin) / calls / (routine == PINGPONG ? 2 : 1);
            world.Allreduce(mine, 0, all, 0, 1, MPI.DOUBLE, MPI.MAX);
            seconds[batch % batches] = all[0];
            wrong += countWrong(routine, batch, count);
        }
        mine[0] = wrong;
        world.Allreduce(mine, 0, all, 0, 1, MPI.DOUBLE, MPI.SUM);
        StringBuilder line = new StringBuilder(String.format("%s %d %.0f", routine, bytes, all[0]));
        for (double each : seconds) line.append(String.format(Locale.ROOT, " %.6e", each));
        if (rank == 0) System.out.println(line);
    }

    public static void main(String[] all) throws Exception {
        String[] words = MPI.Init(all);
        int size = MPI.COMM_WORLD.Size();
        ExchangeMpj own = new ExchangeMpj(Integer.parseInt(words[words.length - 2]));
        if (own.rank == 0) System.out.println("world " + size + " 0 MPJ Express, threads of one JVM");
        if (size == RANKS) {
            for (String routine : new String[] {PINGPONG, BCAST, ALLREDUCE, ALLTOALL})
                for (int n = 1; n < words.length; n += 2)
                    own.measure(routine, Integer.parseInt(words[n]), Integer.parseInt(words[n + 1]),
                        Integer.parseInt(words[0]));
            own.measure(BARRIER, 0, Integer.parseInt(words[2]), Integer.parseInt(words[0]));
            if (own.rank == 0) System.out.println("end");
        }
        MPI.Finalize();
    }
}
