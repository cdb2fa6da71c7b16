/** One contender. One thread uses it. */
interface Client {
    /** How much of the section it fills: the sum of all who are inside may not exceed the limit of the scenario. */
    int weight();

    void acquire() throws Exception;

    void release() throws Exception;
}
